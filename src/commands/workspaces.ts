import { workspaceView } from '../accounts/views.ts'
import { parseFlags, print, requiredText, table, UsageMistake, withBooks, type Command } from './command.ts'

const COLUMNS = ['name', 'requests_per_minute', 'created', 'id']

export const workspaces: Command = {
  summary: 'create, list and adjust workspaces',
  help: `weir workspaces create NAME
weir workspaces list
weir workspaces set NAME --requests-per-minute N|default

A workspace is a customer: its keys share one rate allowance and one bill.

  --requests-per-minute N   what all keys of the workspace may send in a minute; "default" for the service's`,
  async run(args) {
    const flags = parseFlags(args, { 'requests-per-minute': 'string' })
    const [action, name] = flags.positionals
    switch (action) {
      case 'list':
        return withBooks(flags, { changes: false }, async ({ accounts, config }) => {
          const data = accounts.workspaces().map((it) => workspaceView(it, config.requestsPerMinute))
          print(flags, { object: 'list', data }, () => table(data, COLUMNS))
        })
      case 'create':
        if (!name) throw new UsageMistake('give the name of the workspace: weir workspaces create NAME')
        return withBooks(flags, { changes: true }, async ({ accounts, config }) => {
          const view = workspaceView(await accounts.createWorkspace(name), config.requestsPerMinute)
          print(flags, view, () => table([view], COLUMNS))
        })
      case 'set': {
        if (!name) throw new UsageMistake('give the name of the workspace: weir workspaces set NAME …')
        const limit = requiredText(flags, 'requests-per-minute')
        return withBooks(flags, { changes: true }, async ({ accounts, config }) => {
          const changed = await accounts.setRequestsPerMinute(name, limit === 'default' ? null : Number(limit))
          const view = workspaceView(changed, config.requestsPerMinute)
          print(flags, view, () => table([view], COLUMNS))
        })
      }
      default:
        throw new UsageMistake('say what to do: create, list or set')
    }
  },
}
