import { keyList, oneKey, type KeyList, type KeyView } from '../key-list.ts'
import type { ChangedKey } from '../../accounts.ts'
import type { GivenLimits } from '../key-store.ts'
import { amountIn, requireModels } from '../key-limits.ts'
import { counted } from '../../../shared/counts.ts'
import { endOf } from '../../../shared/period.ts'
import { systemClock } from '../../../shared/system-clock.ts'
import { parseFlags, UsageError, withStore, type Command, type Flags, type OpenedStore } from '../../../cli/command.ts'
import { renderFields, renderTable, type Column } from '../../../cli/terminal/table.ts'
import { dayText, minuteText, ZONE } from '../../../cli/terminal/times.ts'
import type { View } from '../../../cli/terminal/view.ts'

export const keys: Command = {
  summary: 'create, list, change and revoke API keys',
  help: `weir keys create --workspace W [--name TEXT] [--expires DATE] [LIMITS]
weir keys list [--workspace W] [--all] [--limit N] [--before ID]
weir keys set ID [--name TEXT] [--expires DATE|never] [LIMITS]
weir keys revoke ID

"create" shows the key once; Weir stores only its hash. "list" shows the keys
that work, the newest first, and when each was last used for a request that
reached an engine. Of each key it shows the last four characters.
"set" changes the name, the expiry or the limits of a key. "set" and "revoke"
take effect immediately, also in a running service.

  --workspace W    the workspace that the key belongs to
  --name TEXT      what the key is for, such as "website"
  --expires DATE   the last day in Sydney on which the key works, such as
                   2027-06-30, or an exact time such as 2027-06-30T09:00:00Z;
                   "never" with "set": it does not expire any more
  --all            also list keys that are revoked or have expired; --json
                   always lists them
  --limit N        how many keys to list, 1 to 10000; by default 1000
  --before ID      continue after the key with this id

  --manage-keys yes|no     whether the key may manage keys of its workspace with
                           /api/v1/keys, none of which may do more than itself

Limits of a key:
  --requests-per-minute N  within the limit of its workspace; "none" removes it
  --tokens-per-minute N    input and output tokens, a soft limit: requests are
                           refused once it is reached; "none" removes it
  --spend-per-day AUD      what the key may spend in a day in Sydney, excluding
                           GST, such as 5.00; "none" removes it
  --spend-per-month AUD    the same for a calendar month in Sydney
  --models A,B             slugs or aliases that the key may call; "any": all
  --endpoints A,B          inference endpoints that the key may call, such as
                           /chat/completions,/embeddings; "any": all
  --addresses A,B          IP addresses and networks that the key may be used
                           from, such as 203.0.113.0/24; "any": all. Behind a
                           proxy, Weir sees the address of the proxy.`,
  async run(args) {
    const flags = parseFlags(
      args,
      {
        workspace: 'string',
        name: 'string',
        expires: 'string',
        all: 'boolean',
        limit: 'string',
        before: 'string',
        'manage-keys': 'string',
        'requests-per-minute': 'string',
        'tokens-per-minute': 'string',
        'spend-per-day': 'string',
        'spend-per-month': 'string',
        models: 'string',
        endpoints: 'string',
        addresses: 'string',
      },
      2,
    )
    const [action, id] = flags.positionals
    if (action !== 'set' && action !== 'revoke') flags.refuseMore(1)
    switch (action) {
      case 'create': {
        const workspace = flags.requiredText('workspace')
        const expires = flags.text('expires')
        const expiresAt = expires === undefined ? undefined : endOf('expires', expires)
        const limits = limitsIn(flags)
        return withStore(flags, { changes: true }, async ({ accounts, config, record }) => {
          if (limits.given.allowedModels) {
            requireModels(limits.given, config.catalog.read(), accounts.workspace(workspace).name)
          }
          const name = flags.text('name')
          const created = await record(
            {
              action: 'createKey',
              subject: '',
              body: { workspace, name, expires_at: expires, manage_keys: rightIn(flags), ...limits.body },
              state: async () => undefined,
            },
            () => accounts.createKey(workspace, { name, expiresAt, manageKeys: rightIn(flags), ...limits.given }),
          )
          flags.print(
            created,
            ({ paint }) =>
              `${paint('bold', created.key)}\n\nStore it safely: it is not shown again. Its id is ${created.id}.`,
          )
        })
      }
      case 'list':
        return withStore(flags, { changes: false }, async ({ accounts, store }) => {
          const named = flags.text('workspace')
          const isAll = flags.values['all'] === true
          const list = await keyList(
            { accounts, store },
            {
              workspaceId: named === undefined ? undefined : accounts.workspace(named).id,
              validAt: isAll || flags.values['json'] ? undefined : systemClock.now(),
              before: flags.text('before'),
              limit: flags.limit(),
            },
          )
          flags.print(list, (view) => keysText(list, { isAll, now: systemClock.now() }, view))
        })
      case 'set': {
        if (!id) throw new UsageError('give the id of the key: weir keys set ID …')
        const name = flags.text('name')
        const expires = flags.text('expires')
        const limits = limitsIn(flags)
        const manageKeys = rightIn(flags)
        const hasMore = expires !== undefined || manageKeys !== undefined || Object.keys(limits.body).length > 0
        if (name === undefined && !hasMore) {
          throw new UsageError('give something to change: --name, --expires or a limit such as --requests-per-minute N')
        }
        const expiresAt = expires === undefined ? undefined : expires === 'never' ? null : endOf('expires', expires)
        const body = { name, expires_at: expires === 'never' ? null : expires, manage_keys: manageKeys, ...limits.body }
        return changeOne(flags, { id, action: 'changeKey', body }, async ({ accounts, config }) => {
          const key = limits.given.allowedModels && (await accounts.key(id))
          if (key) requireModels(limits.given, config.catalog.read(), accounts.workspace(key.workspaceId).name)
          return accounts.changeKey(id, { name, expiresAt, manageKeys, ...limits.given })
        })
      }
      case 'revoke':
        if (!id) throw new UsageError('give the id of the key: weir keys revoke ID')
        return changeOne(flags, { id, action: 'revokeKey', body: undefined }, ({ accounts }) => accounts.revokeKey(id))
      default:
        throw new UsageError('choose an action: create, list, set or revoke')
    }
  },
}

/** The limits that are given: for the audit log as the API names them, and for the account. */
function limitsIn(flags: Flags): { readonly body: object; readonly given: GivenLimits } {
  const [requests, tokens] = [noneOr(flags.text('requests-per-minute')), noneOr(flags.text('tokens-per-minute'))]
  const [perDay, perMonth] = [noneOr(flags.text('spend-per-day')), noneOr(flags.text('spend-per-month'))]
  const given = {
    requestsPerMinute: typeof requests === 'string' ? Number(requests) : requests,
    tokensPerMinute: typeof tokens === 'string' ? Number(tokens) : tokens,
    spendPerDay: typeof perDay === 'string' ? amountIn('spend_per_day', perDay) : perDay,
    spendPerMonth: typeof perMonth === 'string' ? amountIn('spend_per_month', perMonth) : perMonth,
    allowedModels: listIn(flags, 'models'),
    allowedEndpoints: listIn(flags, 'endpoints'),
    allowedAddresses: listIn(flags, 'addresses'),
  }
  const body = {
    requests_per_minute: given.requestsPerMinute,
    tokens_per_minute: given.tokensPerMinute,
    spend_per_day: perDay,
    spend_per_month: perMonth,
    allowed_models: given.allowedModels,
    allowed_endpoints: given.allowedEndpoints,
    allowed_addresses: given.allowedAddresses,
  }
  return { body: Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined)), given }
}

function rightIn(flags: Flags): boolean | undefined {
  const text = flags.text('manage-keys')
  if (text === undefined || text === 'yes' || text === 'no') return text === undefined ? undefined : text === 'yes'
  throw new UsageError('--manage-keys is yes or no')
}

function noneOr(text: string | undefined): string | null | undefined {
  return text === 'none' ? null : text
}

function listIn(flags: Flags, name: string): readonly string[] | null | undefined {
  const text = flags.text(name)
  return text === undefined ? undefined : text === 'any' ? null : text.split(',').map((it) => it.trim())
}

/** Performs a change of one key, records it, and prints the key. */
function changeOne(
  flags: Flags,
  { id, ...change }: { readonly id: string; readonly action: string; readonly body: object | undefined },
  act: (books: OpenedStore) => Promise<ChangedKey>,
): Promise<void> {
  return withStore(flags, { changes: true }, async (books) => {
    const { accounts, store, record } = books
    const state = async (): Promise<KeyView | undefined> => {
      const key = await accounts.key(id)
      return key && oneKey({ accounts, store }, key)
    }
    const changed = await record({ ...change, subject: id, state }, async () =>
      oneKey({ accounts, store }, (await act(books)).key),
    )
    flags.print(changed, (view) => keyText(changed, view))
  })
}

export function keysText(
  { data, next }: KeyList,
  { isAll, now }: { readonly isAll: boolean; readonly now: number },
  view: View,
): string {
  const columns: readonly Column<KeyView>[] = [
    { title: 'ID', cell: ({ id }) => id },
    { title: 'KEY', cell: ({ redacted }) => redacted },
    { title: 'WORKSPACE', cell: ({ workspace }) => workspace, mayShrink: true },
    { title: 'NAME', cell: ({ name }) => name, mayShrink: true },
    { title: 'LAST USED', cell: ({ last_used_at: at }) => (at === null ? 'never' : dayText(at)) },
    { title: 'EXPIRES', cell: ({ expires_at: expires }) => lastDay(expires) },
    { title: 'STATE', cell: (key) => (isAll ? (stateOf(key, now) ?? 'works') : null) },
  ]
  const notes = [
    ...(next === null ? [] : [`There are more keys: see them with --before ${next}.`]),
    ...(isAll ? [] : ['Keys that are revoked or have expired are not shown: see them with --all.']),
  ]
  return [renderTable(data, columns, view), ...(notes.length === 0 ? [] : [notes.join('\n')])].join('\n\n')
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

function amountText(amount: string | null): string | null {
  return amount === null ? null : `A$${amount} (excluding GST)`
}

function keyText(key: KeyView, view: View): string {
  const time = (at: string | null): string | null => (at === null ? null : `${minuteText(at)} (${ZONE})`)
  return renderFields(
    [
      ['id', key.id],
      ['key', key.redacted],
      ['workspace', key.workspace],
      ['name', key.name],
      ['created', time(key.created)],
      ['expires', time(key.expires_at)],
      ['last used', time(key.last_used_at) ?? 'never'],
      ['revoked', time(key.revoked)],
      ['manages keys', key.manage_keys ? 'yes' : null],
      [
        'rate limit',
        key.requests_per_minute === null ? null : `${counted(key.requests_per_minute, 'request')} per minute`,
      ],
      ['token limit', key.tokens_per_minute === null ? null : `${counted(key.tokens_per_minute, 'token')} per minute`],
      ['spend per day', amountText(key.spend_per_day)],
      ['spend per month', amountText(key.spend_per_month)],
      ['models', key.allowed_models?.join(', ') ?? null],
      ['endpoints', key.allowed_endpoints?.join(', ') ?? null],
      ['addresses', key.allowed_addresses?.join(', ') ?? null],
    ],
    view,
  )
}
