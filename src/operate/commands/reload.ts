import { ConfigError } from '../../shared/checked-yaml.ts'
import { pendingText } from '../../shared/settings.ts'
import { requestReload, findService, type ReloadAnswer } from '../running-service.ts'
import {
  CommandFailed,
  configOf,
  parseFlags,
  reportUnreached,
  UsageError,
  withStore,
  type Command,
} from '../../cli/command.ts'
import { counted } from '../../shared/counts.ts'

export const reload: Command = {
  summary: 'make the running service read weir.yaml and its catalog again',
  help: `weir reload [--force]

Makes the running service read weir.yaml and the catalog again, and waits until
it has. The service also does so by itself when a file changes, and on SIGHUP.
It refuses a file with a mistake, a file without models, and a file that has
lost a price that a model is charged for, and goes on with what it had. Changed
settings that need a restart are named; if the catalog itself is one of them,
because it is in another file now, the command fails.

  --force   take a file without models, or one that has lost prices`,
  async run(args) {
    const flags = parseFlags(args, { force: 'boolean' })
    const { dataDir } = configOf(flags)
    const force = flags.values['force'] === true
    if (!findService(dataDir)) throw nothingRuns(dataDir)
    const action = { action: 'reloadCatalog', subject: '', body: { force }, state: async () => undefined }
    await withStore(flags, { changes: false }, async ({ record }) => {
      const answer = await record(action, () => reloaded(dataDir, force))
      const { models = 0, unreached = [], needs_restart: pending = [] } = answer
      const catalog = pending.find(({ key }) => key === 'catalog')
      flags.print(answer, ({ paint }) =>
        [
          ...(catalog ? [] : [`Reloaded: ${counted(models, 'model')}.`]),
          ...pending.map((it) => `${paint('yellow', '!')} ${pendingText(it)}`),
        ].join('\n'),
      )
      reportUnreached(unreached)
      if (catalog) throw new CommandFailed('the service goes on with its old catalog; restart it to take the new one')
    })
  },
}

async function reloaded(dataDir: string, force: boolean): Promise<Exclude<ReloadAnswer, { error: string }>> {
  const answer = await requestReload(dataDir, 'catalog', { force })
  if (!answer) throw nothingRuns(dataDir)
  if ('error' in answer) throw new ConfigError(answer.error)
  return answer
}

function nothingRuns(dataDir: string): UsageError {
  return new UsageError(`no service is running on ${dataDir}; start it with npm start, or name another with --data`)
}
