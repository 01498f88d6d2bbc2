import { workspaceView } from '../views.ts'
import { changeWorkspace, type WorkspaceChange } from '../workspace-change.ts'
import { formatAbn } from '../../shared/money/abn.ts'
import { parseFlags, UsageError, withStore, type Command, type Flags } from '../../cli/command.ts'
import { count, counted } from '../../shared/counts.ts'
import { renderFields, renderTable, type Column } from '../../cli/terminal/table.ts'
import { dayText, minuteText, ZONE } from '../../cli/terminal/times.ts'
import type { View } from '../../cli/terminal/view.ts'

type WorkspaceView = ReturnType<typeof workspaceView>

export const workspaces: Command = {
  summary: 'create, list, show and change workspaces',
  help: `weir workspaces create NAME
weir workspaces list
weir workspaces show NAME
weir workspaces set NAME [--requests-per-minute N|default]
                         [--tokens-per-minute N|none]
                         [--spend-limit AUD|none] [--soft|--hard]
                         [--buyer-name TEXT] [--buyer-abn ABN]
                         [--buyer-address TEXT] [--purchase-order TEXT]
                         [--buyer-email ADDRESS|none]

A workspace is a customer: its keys share one rate limit and one bill.

  --requests-per-minute N   rate limit of all the workspace's keys together;
                            "default" restores the default of the service
  --tokens-per-minute N     limit of input and output tokens of all its keys
                            together; soft: requests are refused once it is
                            reached; "none" removes the limit
  --spend-limit AUD         limit per calendar month in Sydney, excluding GST;
                            "none" removes the limit
  --hard                    refuse requests that could exceed the spend limit,
                            with status 402; a new limit is hard
  --soft                    serve requests above the spend limit, and report it
                            in the log, in /metrics and in a response header
  --buyer-name TEXT         name of the buyer on invoices
  --buyer-abn ABN           ABN of the buyer on invoices
  --buyer-address TEXT      address of the buyer on invoices
  --purchase-order TEXT     the buyer's own order number, printed on invoices
  --buyer-email ADDRESS     where invoices are sent, if smtp is configured;
                            "none" stops sending them`,
  async run(args) {
    const flags = parseFlags(args, changes, 2)
    const [action, name] = flags.positionals
    switch (action) {
      case 'list':
        flags.refuseMore(1)
        return withStore(flags, { changes: false }, async ({ accounts, config }) => {
          const data = accounts.workspaces().map((it) => workspaceView(it, config.requestsPerMinute))
          flags.print({ object: 'list', data }, (view) => renderTable(data, COLUMNS, view))
        })
      case 'show':
        if (!name) throw new UsageError('give the name of the workspace: weir workspaces show NAME')
        return withStore(flags, { changes: false }, async ({ accounts, config }) => {
          const shown = workspaceView(accounts.workspace(name), config.requestsPerMinute)
          flags.print(shown, (view) => workspaceText(shown, view))
        })
      case 'create':
        if (!name) throw new UsageError('give the name of the workspace: weir workspaces create NAME')
        return withStore(flags, { changes: true }, async ({ accounts, config, record }) => {
          const state = async (): Promise<WorkspaceView> =>
            workspaceView(accounts.workspace(name), config.requestsPerMinute)
          await record({ action: 'createWorkspace', subject: '', body: { name }, state }, () =>
            accounts.createWorkspace(name),
          )
          const created = await state()
          const next = `Create a key for it with: weir keys create --workspace ${quoted(created.name)}`
          flags.print(created, (view) => `${workspaceText(created, view)}\n\n${next}`)
        })
      case 'set': {
        if (!name) throw new UsageError('give the name of the workspace: weir workspaces set NAME …')
        const change = changeIn(flags)
        return withStore(flags, { changes: true }, async ({ accounts, config, record }) => {
          const state = async (): Promise<WorkspaceView> =>
            workspaceView(accounts.workspace(name), config.requestsPerMinute)
          await record({ action: 'changeWorkspace', subject: name, body: change, state }, () =>
            changeWorkspace(accounts, name, change),
          )
          const changed = await state()
          flags.print(changed, (view) => workspaceText(changed, view))
        })
      }
      default:
        throw new UsageError('choose an action: create, list, show or set')
    }
  },
}

const changes = {
  'requests-per-minute': 'string',
  'tokens-per-minute': 'string',
  'spend-limit': 'string',
  soft: 'boolean',
  hard: 'boolean',
  'buyer-name': 'string',
  'buyer-abn': 'string',
  'buyer-address': 'string',
  'purchase-order': 'string',
  'buyer-email': 'string',
} as const

const COLUMNS: readonly Column<WorkspaceView>[] = [
  { title: 'NAME', cell: ({ name }) => name, mayShrink: true },
  { title: 'PER MINUTE', cell: ({ requests_per_minute: limit }) => count(limit), align: 'right' },
  { title: 'SPEND LIMIT', cell: spendLimitText, align: 'right' },
  { title: 'BUYER', cell: ({ buyer }) => buyer.name, mayShrink: true },
  { title: 'CREATED', cell: ({ created }) => dayText(created) },
]

export function workspaceText(shown: WorkspaceView, view: View): string {
  const { name, id, requests_per_minute: limit, tokens_per_minute: tokens, buyer, created } = shown
  return renderFields(
    [
      ['name', view.paint('bold', name)],
      ['id', id],
      ['rate limit', `${counted(limit, 'request')} per minute`],
      ['token limit', tokens === null ? null : `${counted(tokens, 'token')} per minute`],
      ['spend limit', spendLimitText(shown) ?? 'none'],
      ['buyer', buyer.name],
      ['ABN', buyer.abn === null ? null : formatAbn(buyer.abn)],
      ['address', buyer.address],
      ['order', buyer.purchase_order],
      ['e-mail', buyer.email],
      ['created', `${minuteText(created)} (${ZONE})`],
    ],
    view,
  )
}

function spendLimitText({ spend_limit: limit, spend_limit_kind: kind }: WorkspaceView): string | null {
  return limit === null ? null : `A$${limit} a month, ${kind}`
}

/** As a shell takes it. */
function quoted(name: string): string {
  return /^[\w.-]+$/.test(name) ? name : `"${name}"`
}

const BUYER_FLAGS = [
  ['name', 'buyer-name'],
  ['abn', 'buyer-abn'],
  ['address', 'buyer-address'],
  ['purchase_order', 'purchase-order'],
] as const

function changeIn(flags: Flags): WorkspaceChange {
  const perMinute = flags.text('requests-per-minute')
  const tokens = flags.text('tokens-per-minute')
  const spend = flags.text('spend-limit')
  const buyer: Record<string, string | null> = Object.fromEntries(
    BUYER_FLAGS.flatMap(([part, flag]) => {
      const value = flags.text(flag)
      return value === undefined ? [] : [[part, value] as const]
    }),
  )
  const email = flags.text('buyer-email')
  if (email !== undefined) buyer['email'] = email === 'none' ? null : email
  const change = {
    ...(perMinute === undefined ? {} : { requests_per_minute: perMinute === 'default' ? null : Number(perMinute) }),
    ...(tokens === undefined ? {} : { tokens_per_minute: tokens === 'none' ? null : Number(tokens) }),
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
