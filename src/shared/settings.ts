export type SettingValue = string | number | readonly string[]

/** One setting of the service: its key as in weir.yaml, its value, and who set it. */
export interface Setting {
  readonly key: string
  readonly value: SettingValue
  /** An option such as --port, a variable such as WEIR_PORT, a place such as weir.yaml:3, or "default". */
  readonly source: string
  /** A fingerprint for comparing secrets; `value` only shows that one is set. */
  readonly fingerprint?: string
}

/** A running service applies these from a changed file. Everything else is fixed when it starts. */
const live = new Set([
  'rate_limit.requests_per_minute',
  'rate_limit.unauthenticated_per_minute',
  'server.drain_ms',
  'log.level',
])

export const isLive = (key: string): boolean => live.has(key)

/** The value in the file, if the running service does not use it. */
export interface PendingSetting {
  readonly key: string
  /** null: the file no longer sets it. */
  readonly value: SettingValue | null
  readonly needs: 'reload' | 'restart'
}

/** The settings that a running service uses, and where its file differs. */
export interface SettingsAnswer {
  readonly file: string | null
  readonly settings: readonly Setting[]
  readonly pending: readonly PendingSetting[]
  /** The mistakes in the file; null: there are none. */
  readonly problem: string | null
}

/** `written` has to come from the same process as `inForce`: another one has other options, variables and defaults. */
export function pendingSettings(inForce: readonly Setting[], written: readonly Setting[]): readonly PendingSetting[] {
  const keys = [...new Set([...inForce, ...written].map(({ key }) => key))]
  const find = (settings: readonly Setting[], key: string): Setting | undefined => settings.find((it) => it.key === key)
  return keys
    .filter((key) => comparable(find(inForce, key)) !== comparable(find(written, key)))
    .map((key) => ({ key, value: find(written, key)?.value ?? null, needs: isLive(key) ? 'reload' : 'restart' }))
}

/** "server.port is 18099 in the file: needs a restart". */
export function pendingText({ key, value, needs }: PendingSetting): string {
  return `${key} is ${settingText(value)} in the file: needs a ${needs}`
}

export function settingText(value: SettingValue | null): string {
  if (value === null) return 'not set'
  if (typeof value === 'string') return value
  // Ports are not grouped.
  if (typeof value === 'number') return value > 65_535 ? value.toLocaleString('en-AU') : String(value)
  return value.length === 0 ? 'none' : value.join(', ')
}

function comparable(setting: Setting | undefined): string | undefined {
  return setting && JSON.stringify([setting.value, setting.fingerprint])
}
