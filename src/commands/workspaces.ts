import { workspaceView } from '../accounts/views.ts'
import { changeWorkspace, type WorkspaceChange } from '../accounts/workspace-change.ts'
import { parseFlags, print, table, text, UsageError, withBooks, type Command, type Flags } from './command.ts'

const COLUMNS = ['name', 'requests_per_minute', 'spend_limit', 'spend_limit_kind', 'created', 'id']

export const workspaces: Command = {
  summary: 'create, list and change workspaces',
  help: `weir workspaces create NAME
weir workspaces list
weir workspaces set NAME [--requests-per-minute N|default]
                         [--spend-limit AUD|none] [--soft|--hard]
                         [--buyer-name TEXT] [--buyer-abn ABN]
                         [--buyer-address TEXT]

A workspace is a customer: its keys share one rate limit and one bill.

  --requests-per-minute N   rate limit of all the workspace's keys together;
                            "default" restores the default of the service
  --spend-limit AUD         limit per calendar month in Sydney, excluding GST;
                            "none" removes the limit
  --hard                    refuse requests that could exceed the spend limit,
                            with status 402; a new limit is hard
  --soft                    serve requests above the spend limit, and report it
                            in the log, in /metrics and in a response header
  --buyer-name TEXT         name of the buyer on invoices
  --buyer-abn ABN           ABN of the buyer on invoices
  --buyer-address TEXT      address of the buyer on invoices`,
  async run(args) {
    const flags = parseFlags(args, {
      'requests-per-minute': 'string',
      'spend-limit': 'string',
      soft: 'boolean',
      hard: 'boolean',
      'buyer-name': 'string',
      'buyer-abn': 'string',
      'buyer-address': 'string',
    })
    const [action, name] = flags.positionals
    switch (action) {
      case 'list':
        return withBooks(flags, { changes: false }, async ({ accounts, config }) => {
          const data = accounts.workspaces().map((it) => workspaceView(it, config.requestsPerMinute))
          print(flags, { object: 'list', data }, () => table(data, COLUMNS))
        })
      case 'create':
        if (!name) throw new UsageError('give the name of the workspace: weir workspaces create NAME')
        return withBooks(flags, { changes: true }, async ({ accounts, config }) => {
          const view = workspaceView(await accounts.createWorkspace(name), config.requestsPerMinute)
          print(flags, view, () => table([view], COLUMNS))
        })
      case 'set': {
        if (!name) throw new UsageError('give the name of the workspace: weir workspaces set NAME …')
        const change = changeIn(flags)
        return withBooks(flags, { changes: true }, async ({ accounts, config }) => {
          const changed = await changeWorkspace(accounts, name, change)
          const view = workspaceView(changed, config.requestsPerMinute)
          print(flags, view, () => table([view], COLUMNS))
        })
      }
      default:
        throw new UsageError('choose an action: create, list or set')
    }
  },
}

function changeIn(flags: Flags): WorkspaceChange {
  const perMinute = text(flags, 'requests-per-minute')
  const spend = text(flags, 'spend-limit')
  const buyer = Object.fromEntries(
    (['name', 'abn', 'address'] as const).flatMap((part) => {
      const value = text(flags, `buyer-${part}`)
      return value === undefined ? [] : [[part, value] as const]
    }),
  )
  const change = {
    ...(perMinute === undefined ? {} : { requests_per_minute: perMinute === 'default' ? null : Number(perMinute) }),
    ...(spend === undefined ? {} : { spend_limit: spend === 'none' ? null : spend }),
    ...kindIn(flags),
    ...(Object.keys(buyer).length === 0 ? {} : { buyer }),
  }
  if (Object.keys(change).length === 0)
    throw new UsageError('give something to change, such as --requests-per-minute N')
  return change
}

function kindIn({ values: { soft, hard } }: Flags): Pick<WorkspaceChange, 'spend_limit_kind'> {
  if (soft && hard) throw new UsageError('give either --soft or --hard')
  return soft ? { spend_limit_kind: 'soft' } : hard ? { spend_limit_kind: 'hard' } : {}
}
