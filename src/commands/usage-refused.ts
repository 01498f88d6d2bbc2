import { periodOf, refusalView, refusedGroupView } from '../accounts/views.ts'
import { statusOf } from '../core/errors.ts'
import type { Refusal, RefusedGroup } from '../core/refusals.ts'
import { print, refuseMore, text, withBooks, type Flags } from './command.ts'
import { count, counted } from './terminal/amounts.ts'
import { renderTable, type Column } from './terminal/table.ts'
import { secondText, ZONE } from './terminal/times.ts'
import type { View } from './terminal/view.ts'

/** `weir usage refused`: the requests that were refused before an engine had them. */

const HOUR_MS = 3_600_000
const GROUPS_MAX = 1000
const NEWEST_SHOWN = 20

type NameOf = (workspaceId: string) => string | null

export async function showRefused(flags: Flags): Promise<void> {
  refuseMore(flags, 1)
  await withBooks(flags, { changes: false }, async ({ accounts, store }) => {
    const named = text(flags, 'workspace')
    const workspaceId = named === undefined ? undefined : accounts.workspace(named).id
    const { from, to } = periodOf({ from: text(flags, 'from'), to: text(flags, 'to') })
    // Counts have hours: those that the period begins and ends in are in it.
    const hours = { workspaceId, from: from - (from % HOUR_MS), to }
    const groups = await store.refusedGroups({ ...hours, limit: GROUPS_MAX })
    const newest = await store.refusedRequests({ workspaceId, from, to, limit: NEWEST_SHOWN })
    const names = new Map(accounts.workspaces().map(({ id, name }) => [id, name]))
    const nameOf: NameOf = (id) => names.get(id) ?? null
    const data = {
      object: 'refused',
      groups: groups.map((it) => refusedGroupView(it, nameOf)),
      newest: newest.map((it) => refusalView(it, nameOf)),
    }
    print(flags, data, (view) => refusedText(groups, newest, nameOf, view))
  })
}

export function refusedText(
  groups: readonly RefusedGroup[],
  newest: readonly Refusal[],
  nameOf: NameOf,
  view: View,
): string {
  if (groups.length === 0) return 'No requests were refused.'
  const counts: readonly Column<RefusedGroup>[] = [
    { title: 'WORKSPACE', cell: ({ workspaceId }) => nameOf(workspaceId), mayShrink: true },
    { title: 'KEY', cell: ({ keyId }) => keyId },
    { title: 'STATUS', cell: ({ code }) => String(statusOf(code) ?? '') },
    { title: 'CODE', cell: ({ code }) => code },
    { title: 'REQUESTS', cell: ({ requests }) => count(requests), align: 'right' },
  ]
  const requests: readonly Column<Refusal>[] = [
    { title: `TIME (${ZONE.toUpperCase()})`, cell: ({ at }) => secondText(at) },
    { title: 'CODE', cell: ({ code }) => code },
    { title: 'ENDPOINT', cell: ({ endpoint }) => endpoint, mayShrink: true },
    { title: 'MODEL', cell: ({ model }) => model, mayShrink: true },
  ]
  const total = groups.reduce((sum, it) => sum + it.requests, 0)
  return [
    renderTable(groups, counts, view),
    `${counted(total, 'refused request')}. The newest:`,
    renderTable(newest, requests, view, ({ requestId }) => requestId),
    'weir usage REQUEST_ID says why one was refused.',
  ].join('\n\n')
}
