import { Paged, usePages } from '../../shared/pages.tsx'
import { Empty, Moment, PageHead, State, Table } from '../../shared/parts.tsx'
import { api, type Answer } from '../api.ts'

/** Who did what, with what it was before and after. */

type Entry = Answer<'auditLog'>['data'][number]

export function AuditPage() {
  const pages = usePages((before: number | undefined, signal) =>
    api('auditLog', { query: { limit: 25, ...(before === undefined ? {} : { before }) }, signal }),
  )
  return (
    <>
      <PageHead
        title="Audit log"
        about="Every change through this console, the API or a command. It cannot be edited."
      />
      <Paged of={pages}>
        {(entries) =>
          entries.length === 0 ? (
            <Empty title="Nothing has been changed yet" />
          ) : (
            <Table caption="Audit log" rows={entries} keyOf={({ id }) => String(id)} columns={columns} />
          )
        }
      </Paged>
    </>
  )
}

const columns = [
  { title: 'When', cell: ({ at }: Entry) => <Moment at={at} /> },
  { title: 'Who', cell: ({ actor }: Entry) => <span class="name-cell">{actor}</span> },
  { title: 'What', cell: ({ action }: Entry) => <code class="small">{action}</code> },
  { title: 'On', cell: (entry: Entry) => <span class="name-cell">{subjectOf(entry) || '–'}</span> },
  {
    title: 'Outcome',
    cell: ({ outcome }: Entry) => (
      <State is={outcome === 'done' ? 'good' : outcome === 'refused' ? 'warn' : 'idle'}>{outcome}</State>
    ),
  },
  { title: 'Changed', cell: (entry: Entry) => <Changed of={entry} /> },
]

/** What did not exist before, such as a new key, is named by what was asked for. */
function subjectOf({ subject, request }: Entry): string {
  if (subject !== '' || request === null) return subject
  const asked = fieldsOf(request)
  const names = ['workspace', 'name', 'period'].map((name) => asked[name])
  return names.filter((it) => typeof it === 'string').join(' ')
}

function Changed({ of: { request, before, after } }: { of: Entry }) {
  const fields = differences(before, after)
  return (
    <details class="small">
      <summary>
        {fields.length === 0
          ? 'Details'
          : fields
              .map(([name]) => name)
              .join(', ')
              .slice(0, 60)}
      </summary>
      {fields.map(([name, was, is]) => (
        <div key={name} class="wrap">
          <code>{name}</code>: {was} → {is}
        </div>
      ))}
      {request === null ? null : (
        <div class="wrap soft">
          Request: <code>{request}</code>
        </div>
      )}
    </details>
  )
}

/** The fields that differ, as text. */
function differences(before: string | null, after: string | null): readonly (readonly [string, string, string])[] {
  const was = fieldsOf(before)
  const is = fieldsOf(after)
  const names = [...new Set([...Object.keys(was), ...Object.keys(is)])]
  const text = (value: unknown): string => (value === undefined ? '–' : JSON.stringify(value))
  return names
    .filter((name) => JSON.stringify(was[name]) !== JSON.stringify(is[name]))
    .map((name) => [name, text(was[name]), text(is[name])] as const)
}

function fieldsOf(json: string | null): Readonly<Record<string, unknown>> {
  try {
    return (JSON.parse(json ?? '{}') ?? {}) as Readonly<Record<string, unknown>>
  } catch {
    return {}
  }
}
