import { keyView } from '../accounts/views.ts'
import { parseFlags, print, requiredText, table, UsageError, withBooks, type Command } from './command.ts'

const COLUMNS = ['id', 'workspace', 'created', 'revoked']

export const keys: Command = {
  summary: 'create, list and revoke API keys',
  help: `weir keys create --workspace W
weir keys list [--workspace W]
weir keys revoke ID

"create" shows the key once; Weir stores only its hash. "revoke" takes effect
immediately, also in a running service.

  --workspace W   the workspace that the key belongs to`,
  async run(args) {
    const flags = parseFlags(args, { workspace: 'string' }, 2)
    const [action, id] = flags.positionals
    switch (action) {
      case 'create': {
        const workspace = requiredText(flags, 'workspace')
        return withBooks(flags, { changes: true }, async ({ accounts }) => {
          const created = await accounts.createKey(workspace)
          print(
            flags,
            created,
            () => `${created.key}\n\nStore it safely: it is not shown again. Its id is ${created.id}.`,
          )
        })
      }
      case 'list':
        return withBooks(flags, { changes: false }, async ({ accounts }) => {
          const workspaceId = flags.values['workspace'] && accounts.workspace(requiredText(flags, 'workspace')).id
          const data = accounts
            .keys()
            .filter((key) => !workspaceId || key.workspaceId === workspaceId)
            .map((key) => keyView(key, accounts))
          print(flags, { object: 'list', data }, () => table(data, COLUMNS))
        })
      case 'revoke':
        if (!id) throw new UsageError('give the id of the key: weir keys revoke ID')
        return withBooks(flags, { changes: true }, async ({ accounts }) => {
          const view = keyView(await accounts.revokeKey(id), accounts)
          print(flags, view, () => table([view], COLUMNS))
        })
      default:
        throw new UsageError('choose an action: create, list or revoke')
    }
  },
}
