import {
  pendingText,
  settingText,
  type PendingSetting,
  type Setting,
  type SettingValue,
} from '../../shared/settings.ts'
import { findService, settingsInForce } from '../running-service.ts'
import { configOf, parseFlags, type Command } from '../../cli/command.ts'
import { renderTable, type Column } from '../../cli/terminal/table.ts'
import type { View } from '../../cli/terminal/view.ts'

interface ShownSetting {
  readonly key: string
  /** null: the setting is not in force at all. */
  readonly value: SettingValue | null
  readonly source: string
  /** The value in the file, if the running service does not use it yet. */
  readonly pending?: Omit<PendingSetting, 'key'>
}

interface ShownConfig {
  readonly file: string | null
  /** The address of the running service; null when none is running. */
  readonly service: string | null
  /** The mistakes in the file of the running service; null: there are none. */
  readonly problem: string | null
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
    const { file = null, dataDir, settings } = configOf(flags)
    // A service has options, variables and a file of its own, so it makes the comparison itself.
    const running = await settingsInForce(dataDir)
    const shown: ShownConfig = {
      file: running ? running.file : file,
      service: running ? (findService(dataDir)?.url ?? null) : null,
      problem: running?.problem ?? null,
      settings: shownSettings(running?.settings ?? settings, running?.pending ?? []),
    }
    flags.print(shown, (view) => configText(shown, view))
  },
}

function shownSettings(settings: readonly Setting[], pending: readonly PendingSetting[]): readonly ShownSetting[] {
  const byKey = new Map(pending.map(({ key, value, needs }) => [key, { value, needs }]))
  const shown = settings.map(({ key, value, source }) => ({ key, value, source }))
  const added = [...byKey.keys()].filter((key) => !shown.some((setting) => setting.key === key))
  const all = [...shown, ...added.map((key) => ({ key, value: null, source: 'default' }))]
  return all.map((setting) => {
    const waiting = byKey.get(setting.key)
    return waiting ? { ...setting, pending: waiting } : setting
  })
}

const COLUMNS: readonly Column<ShownSetting>[] = [
  { title: 'SETTING', cell: ({ key }) => key },
  { title: 'VALUE', cell: ({ value }) => settingText(value), mayShrink: true },
  {
    title: 'FROM',
    cell: ({ source }) => source,
    mayShrink: true,
    tone: ({ source }) => (source === 'default' ? 'dim' : undefined),
  },
]

export function configText({ file, service, problem, settings }: ShownConfig, view: View): string {
  const notes = [
    ...(problem === null ? [] : [`the file has a mistake and is not taken: ${problem}`]),
    ...settings.flatMap(({ key, pending }) => (pending ? [pendingText({ key, ...pending })] : [])),
  ].map((note) => `${view.paint('yellow', '!')} ${note}`)
  return [
    `${file ?? 'No weir.yaml: the defaults apply'}. ${service === null ? 'No service is running.' : `In force at ${service}:`}`,
    '',
    renderTable(settings, COLUMNS, view),
    ...(notes.length === 0 ? [] : ['', ...notes]),
  ].join('\n')
}
