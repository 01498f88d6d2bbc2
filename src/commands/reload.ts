import { ConfigError } from '../core/checked-yaml.ts'
import { askService } from '../running-service.ts'
import { configOf, parseFlags, print, UsageError, type Command } from './command.ts'
import { counted } from './terminal/amounts.ts'

export const reload: Command = {
  summary: 'make the running service read its catalog again',
  help: `weir reload [--force]

Makes the running service read the catalog again, and waits until it has. The
service also does so by itself when the file changes, and on SIGHUP. It refuses
a file with a mistake, a file without models, and a file that has lost a price
that a model is charged for, and goes on with the old catalog.

  --force   take a file without models, or one that has lost prices`,
  async run(args) {
    const flags = parseFlags(args, { force: 'boolean' })
    const answer = await askService(configOf(flags).dataDir, 'catalog', { force: flags.values['force'] === true })
    if (!answer) throw new UsageError('no service is running on this data directory; start it with npm start')
    if ('error' in answer) throw new ConfigError(answer.error)
    print(flags, answer, () => `Reloaded: ${counted(answer.models ?? 0, 'model')}.`)
  },
}
