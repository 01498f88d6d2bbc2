import { useLocation } from 'preact-iso/router'
import { useState } from 'preact/hooks'
import { brief, milliseconds, picoAud, sydneyDate } from '../../shared/format.ts'
import { OutcomeState } from '../../shared/outcome.tsx'
import { Paged, usePages } from '../../shared/pages.tsx'
import { Empty, Moment, PageHead, Segments, Table } from '../../shared/parts.tsx'
import { REFUSED_SHOWN, RefusedSection, type RefusedGroup, type RefusedRequest } from '../../shared/refused.tsx'
import { api, type Answer } from '../api.ts'
import { WorkspaceField } from '../workspace-field.tsx'

/** Requests that were refused, of all workspaces or one, and the settled ones of a workspace, with how each ended. */

type Row = Answer<'listRequests'>['data'][number]
const DAY_MS = 86_400_000
const periods = [
  ['1', 'Today'],
  ['7', '7 days'],
  ['30', '30 days'],
] as const

export function RequestsPage() {
  const { query, route } = useLocation()
  const days = periods.find(([it]) => it === query['days'])?.[0] ?? '7'
  const workspace = query['workspace'] ?? ''
  const show = (changes: Record<string, string>): void =>
    route(`/console/requests?${new URLSearchParams({ days, workspace, ...changes }).toString()}`, true)
  const period = { from: sydneyDate(Date.now() - (Number(days) - 1) * DAY_MS), to: sydneyDate(Date.now()) }
  const of = workspace === '' ? {} : { workspace }
  return (
    <>
      <PageHead
        title="Requests"
        about="Those that were refused, and for one workspace those that reached a model, with how each ended."
      />
      <div class="row end">
        <Filter key={workspace} value={workspace} choose={(name) => show({ workspace: name })} />
        <Segments label="Period" value={days} options={periods} choose={(next) => show({ days: next })} />
      </div>
      <RefusedSection
        load={(signal) => api('listRefused', { query: { ...period, ...of, limit: REFUSED_SHOWN }, signal })}
        dependencies={[days, workspace]}
        whose={{ title: 'Sent by', cell: (it) => <Sender of={it} /> }}
      />
      {workspace === '' ? null : <Settled workspace={workspace} />}
    </>
  )
}

function Filter({ value, choose }: { value: string; choose: (workspace: string) => void }) {
  const [typed, setTyped] = useState(value)
  return (
    <form
      class="row end"
      role="search"
      onSubmit={(event) => {
        event.preventDefault()
        choose(typed)
      }}
    >
      <WorkspaceField label="Only of workspace" isRequired={false} value={typed} choose={setTyped} />
      <button type="submit">Show</button>
    </form>
  )
}

function Sender({ of: { workspace, key_id } }: { of: (RefusedGroup | RefusedRequest) & { workspace: string | null } }) {
  if (workspace === null) return <span class="soft">no valid key</span>
  return (
    <>
      <a href={`/console/workspaces/${encodeURIComponent(workspace)}`}>{workspace}</a>
      <div class="small soft">{key_id === null ? 'other keys' : <code>{key_id}</code>}</div>
    </>
  )
}

function Settled({ workspace }: { workspace: string }) {
  const [onlyFailed, setOnlyFailed] = useState(false)
  const pages = usePages(
    (before: string | undefined, signal) =>
      api('listRequests', {
        query: {
          workspace,
          limit: 25,
          ...(before === undefined ? {} : { before }),
          ...(onlyFailed ? { outcome: 'failed' as const } : {}),
        },
        signal,
      }),
    [workspace, onlyFailed],
  )
  return (
    <section class="stack" aria-labelledby="settled">
      <h2 id="settled">Settled requests of {workspace}</h2>
      <label class="inline">
        <input type="checkbox" checked={onlyFailed} onChange={(event) => setOnlyFailed(event.currentTarget.checked)} />
        Only requests that did not complete
      </label>
      <Paged of={pages}>
        {(rows, isLast) =>
          rows.length === 0 ? (
            <Empty title={isLast ? 'There are no requests here' : 'None among these; look further'} />
          ) : (
            <Table caption="Settled requests" rows={rows} keyOf={(it) => it.request_id} columns={columns} />
          )
        }
      </Paged>
    </section>
  )
}

const columns = [
  {
    title: 'Settled',
    cell: (row: Row) => (
      <>
        <Moment at={row.settled} />
        <div class="small soft">
          <code>{row.request_id}</code>
        </div>
      </>
    ),
  },
  { title: 'Outcome', cell: (row: Row) => <OutcomeState of={row} /> },
  {
    title: 'Asked for',
    cell: (row: Row) => (
      <>
        <span class="name-cell">{row.model}</span>
        <div class="small soft">
          <code>{row.key_id}</code>
        </div>
      </>
    ),
  },
  { title: 'Input', isNumber: true, cell: (row: Row) => brief(row.input_tokens) },
  { title: 'Output', isNumber: true, cell: (row: Row) => brief(row.output_tokens) },
  { title: 'Took', isNumber: true, cell: (row: Row) => milliseconds(row.duration_ms) },
  { title: 'Cost', isNumber: true, cell: (row: Row) => picoAud(row.amount_pico_aud) },
]
