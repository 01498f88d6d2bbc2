import { refusalView, refusedGroupView } from '../views.ts'
import { periodOf } from '../../../shared/period.ts'
import { statusOf } from '../../../shared/errors.ts'
import type { Refusal, RefusedGroup } from '../../refused-requests/refusals.ts'
import { withStore, type Flags } from '../../../cli/command.ts'
import { count, counted } from '../../../shared/counts.ts'
import { renderTable, type Column } from '../../../cli/terminal/table.ts'
import { secondText, ZONE } from '../../../cli/terminal/times.ts'
import type { View } from '../../../cli/terminal/view.ts'

/** `weir usage refused`: the requests that were refused before they reached an engine. */

const HOUR_MS = 3_600_000
const GROUPS_MAX = 1000
const NEWEST_SHOWN = 20

type NameOf = (workspaceId: string) => string | null

export async function showRefused(flags: Flags): Promise<void> {
  flags.refuseMore(1)
  await withStore(flags, { changes: false }, async ({ accounts, store }) => {
    const named = flags.text('workspace')
    const workspaceId = named === undefined ? undefined : accounts.workspace(named).id
    const { from, to } = periodOf({ from: flags.text('from'), to: flags.text('to') })
    // Counts are hourly: the hours in which the period begins and ends are included.
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
    flags.print(data, (view) => refusedText(groups, newest, nameOf, view))
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
