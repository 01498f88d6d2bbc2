import { endOf, keyView } from '../accounts/views.ts'
import { systemClock } from '../system-clock.ts'
import { parseFlags, print, refuseMore, requiredText, text, UsageError, withBooks, type Command } from './command.ts'
import { counted } from './terminal/amounts.ts'
import { renderFields, renderTable, type Column } from './terminal/table.ts'
import { dayText, minuteText, ZONE } from './terminal/times.ts'
import type { View } from './terminal/view.ts'

type KeyView = ReturnType<typeof keyView>

export const keys: Command = {
  summary: 'create, list and revoke API keys',
  help: `weir keys create --workspace W [--name TEXT] [--expires DATE]
weir keys list [--workspace W] [--all]
weir keys revoke ID

"create" shows the key once; Weir stores only its hash. "list" shows the keys
that work, and when each was last used for a request that reached an engine.
"revoke" takes effect immediately, also in a running service.

  --workspace W    the workspace that the key belongs to
  --name TEXT      what the key is for, such as "website"
  --expires DATE   the last day in Sydney on which the key works, such as
                   2027-06-30, or an exact time such as 2027-06-30T09:00:00Z
  --all            also list keys that are revoked or have expired; --json
                   always lists them`,
  async run(args) {
    const flags = parseFlags(args, { workspace: 'string', name: 'string', expires: 'string', all: 'boolean' }, 2)
    const [action, id] = flags.positionals
    if (action !== 'revoke') refuseMore(flags, 1)
    switch (action) {
      case 'create': {
        const workspace = requiredText(flags, 'workspace')
        const expires = text(flags, 'expires')
        const expiresAt = expires === undefined ? undefined : endOf('expires', expires)
        return withBooks(flags, { changes: true }, async ({ accounts }) => {
          const created = await accounts.createKey(workspace, { name: text(flags, 'name'), expiresAt })
          print(
            flags,
            created,
            ({ paint }) =>
              `${paint('bold', created.key)}\n\nStore it safely: it is not shown again. Its id is ${created.id}.`,
          )
        })
      }
      case 'list':
        return withBooks(flags, { changes: false }, async ({ accounts, store }) => {
          const workspaceId = flags.values['workspace'] && accounts.workspace(requiredText(flags, 'workspace')).id
          const lastUsed = await store.keysLastUsed()
          const data = accounts
            .keys()
            .filter((key) => !workspaceId || key.workspaceId === workspaceId)
            .map((key) => keyView(key, accounts, lastUsed))
          const isAll = flags.values['all'] === true
          print(flags, { object: 'list', data }, (view) => keysText(data, { isAll, now: systemClock.now() }, view))
        })
      case 'revoke':
        if (!id) throw new UsageError('give the id of the key: weir keys revoke ID')
        return withBooks(flags, { changes: true }, async ({ accounts, store }) => {
          const revoked = keyView(await accounts.revokeKey(id), accounts, await store.keysLastUsed())
          print(flags, revoked, (view) => keyText(revoked, view))
        })
      default:
        throw new UsageError('choose an action: create, list or revoke')
    }
  },
}

export function keysText(
  data: readonly KeyView[],
  { isAll, now }: { readonly isAll: boolean; readonly now: number },
  view: View,
): string {
  const working = data.filter((key) => stateOf(key, now) === undefined)
  const hidden = isAll ? 0 : data.length - working.length
  const columns: readonly Column<KeyView>[] = [
    { title: 'ID', cell: ({ id }) => id },
    { title: 'WORKSPACE', cell: ({ workspace }) => workspace, mayShrink: true },
    { title: 'NAME', cell: ({ name }) => name, mayShrink: true },
    { title: 'LAST USED', cell: ({ last_used_at: at }) => (at === null ? 'never' : dayText(at)) },
    { title: 'EXPIRES', cell: ({ expires_at: expires }) => lastDay(expires) },
    { title: 'STATE', cell: (key) => (isAll ? (stateOf(key, now) ?? 'works') : null) },
  ]
  const table = renderTable(isAll ? data : working, columns, view)
  const others = counted(hidden, 'key that is revoked or has expired', 'keys that are revoked or have expired')
  return hidden === 0 ? table : `${table}\n\nNot shown: ${others}. See them with --all.`
}

/** A key that expires at midnight works until the end of the day before. */
function lastDay(expires: string | null): string | null {
  return expires === null ? null : dayText(Date.parse(expires) - 1)
}

/** Why the key does not work; undefined while it does. */
function stateOf({ revoked, expires_at: expires }: KeyView, now: number): 'revoked' | 'expired' | undefined {
  if (revoked !== null) return 'revoked'
  return expires !== null && Date.parse(expires) <= now ? 'expired' : undefined
}

function keyText(key: KeyView, view: View): string {
  const time = (at: string | null): string | null => (at === null ? null : `${minuteText(at)} (${ZONE})`)
  return renderFields(
    [
      ['id', key.id],
      ['workspace', key.workspace],
      ['name', key.name],
      ['created', time(key.created)],
      ['expires', time(key.expires_at)],
      ['last used', time(key.last_used_at) ?? 'never'],
      ['revoked', time(key.revoked)],
    ],
    view,
  )
}
