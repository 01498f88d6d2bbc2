import { changedSettings, isLive, isOwnToProcess, type Setting, type SettingValue } from '../core/settings.ts'
import { findService, settingsInForce } from '../running-service.ts'
import { configOf, parseFlags, print, type Command } from './command.ts'
import { count } from './terminal/amounts.ts'
import { renderTable, type Column } from './terminal/table.ts'
import type { View } from './terminal/view.ts'

interface ShownSetting {
  readonly key: string
  /** null: the setting is not in force at all. */
  readonly value: SettingValue | null
  readonly source: string
  /** What the file says now, if the running service does not go by it yet. */
  readonly pending?: { readonly value: SettingValue | null; readonly needs: 'reload' | 'restart' }
}

interface ShownConfig {
  readonly file: string | null
  /** The address of the running service; null when none is running. */
  readonly service: string | null
  readonly settings: readonly ShownSetting[]
}

export const config: Command = {
  summary: 'show the settings in force and where each comes from',
  help: `weir config

Shows every setting, and whether it comes from an option, a variable, a line of
weir.yaml or the defaults. If a service is running, these are the settings that
it goes by, and changes of the file that it has not taken are named. A service
takes models, rate_limit, log.level and server.drain_ms from a changed file by
itself; everything else needs a restart.`,
  async run(args) {
    const flags = parseFlags(args)
    const { file, dataDir, settings } = configOf(flags)
    const inForce = await settingsInForce(dataDir)
    const shown: ShownConfig = {
      file: file ?? null,
      service: inForce ? (findService(dataDir)?.url ?? null) : null,
      settings: shownSettings(settings, inForce),
    }
    print(flags, shown, (view) => configText(shown, view))
  },
}

/** `inForce` are those of the running service; undefined when none is running. */
export function shownSettings(
  written: readonly Setting[],
  inForce: readonly Setting[] | undefined,
): readonly ShownSetting[] {
  const shown = (inForce ?? written).map(({ key, value, source }) => ({ key, value, source }))
  if (!inForce) return shown
  const pending = new Map(
    changedSettings(inForce, written)
      // An option or a variable of the service is none of this command's business, and the other way round.
      .filter(({ before, after }) => !(before && isOwnToProcess(before)) && !(after && isOwnToProcess(after)))
      .map(({ key, after }) => [key, after?.value ?? null]),
  )
  const added = [...pending.keys()].filter((key) => !shown.some((setting) => setting.key === key))
  const all = [...shown, ...added.map((key) => ({ key, value: null, source: 'default' }))]
  return all.map((setting) =>
    pending.has(setting.key)
      ? {
          ...setting,
          pending: { value: pending.get(setting.key) ?? null, needs: isLive(setting.key) ? 'reload' : 'restart' },
        }
      : setting,
  )
}

const COLUMNS: readonly Column<ShownSetting>[] = [
  { title: 'SETTING', cell: ({ key }) => key },
  { title: 'VALUE', cell: ({ value }) => valueText(value), mayShrink: true },
  {
    title: 'FROM',
    cell: ({ source }) => source,
    mayShrink: true,
    tone: ({ source }) => (source === 'default' ? 'dim' : undefined),
  },
]

export function configText({ file, service, settings }: ShownConfig, view: View): string {
  const pending = settings.flatMap(({ key, pending: it }) =>
    it ? [`${view.paint('yellow', '!')} ${key} is ${valueText(it.value)} in the file: needs a ${it.needs}`] : [],
  )
  return [
    `${file ?? 'No weir.yaml: the defaults apply'}. ${service === null ? 'No service is running.' : `In force at ${service}:`}`,
    '',
    renderTable(settings, COLUMNS, view),
    ...(pending.length === 0 ? [] : ['', ...pending]),
  ].join('\n')
}

function valueText(value: SettingValue | null): string {
  if (value === null) return 'not set'
  if (typeof value === 'string') return value
  // Ports are not grouped.
  if (typeof value === 'number') return value > 65_535 ? count(value) : String(value)
  return value.length === 0 ? 'none' : value.join(', ')
}
