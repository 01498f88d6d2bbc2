export type SettingValue = string | number | readonly string[]

/** One setting of the service: its key as in weir.yaml, its value, and who set it. */
export interface Setting {
  readonly key: string
  readonly value: SettingValue
  /** An option such as --port, a variable such as WEIR_PORT, a place such as weir.yaml:3, or "default". */
  readonly source: string
  /** Stands for a secret when settings are compared; `value` only says that it is set. */
  readonly fingerprint?: string
}

/** A running service takes these from a changed file. Everything else is fixed when it starts. */
const live = new Set([
  'rate_limit.requests_per_minute',
  'rate_limit.unauthenticated_per_minute',
  'server.drain_ms',
  'log.level',
])

export const isLive = (key: string): boolean => live.has(key)

/** Settings whose value differs, as they are in `after`; a setting that is gone is undefined there. */
export function changedSettings(
  before: readonly Setting[],
  after: readonly Setting[],
): readonly { readonly key: string; readonly before: Setting | undefined; readonly after: Setting | undefined }[] {
  const keys = [...new Set([...before, ...after].map(({ key }) => key))]
  const find = (settings: readonly Setting[], key: string): Setting | undefined => settings.find((it) => it.key === key)
  return keys
    .map((key) => ({ key, before: find(before, key), after: find(after, key) }))
    .filter((pair) => comparable(pair.before) !== comparable(pair.after))
}

function comparable(setting: Setting | undefined): string | undefined {
  return setting && JSON.stringify([setting.value, setting.fingerprint])
}

/** Options and variables belong to the process that was started with them; another process has its own. */
export function isOwnToProcess({ source }: Setting): boolean {
  return source.startsWith('--') || source.startsWith('WEIR_')
}
