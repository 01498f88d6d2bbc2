import { logIcon } from '../../shared/icons.ts'
import { Paged, usePages } from '../../shared/pages.tsx'
import { Empty, Moment, PageHead, State, Table } from '../../shared/parts.tsx'
import { api, type Answer } from '../api.ts'

/** Who did what, with the state before and after. */

type Entry = Answer<'auditLog'>['data'][number]

export function AuditPage() {
  const pages = usePages((before: number | undefined, signal) =>
    api('auditLog', { query: { limit: 25, ...(before === undefined ? {} : { before }) }, signal }),
  )
  return (
    <>
      <PageHead
        title="Audit log"
        about="Every change through the consoles, the API or a command. It cannot be edited."
      />
      <Paged of={pages}>
        {(entries) =>
          entries.length === 0 ? (
            <Empty icon={logIcon} title="Nothing has been changed yet">
              What operators and members change is listed here: keys, workspaces, limits, prices and invoices.
            </Empty>
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
  { title: 'Who', cell: ({ actor }: Entry) => <span class="short-cell">{actor}</span> },
  { title: 'What', cell: ({ title }: Entry) => title },
  { title: 'On', cell: (entry: Entry) => <span class="short-cell">{subjectOf(entry) || '–'}</span> },
  {
    title: 'Outcome',
    cell: ({ outcome }: Entry) => (
      <State is={outcome === 'done' ? 'good' : outcome === 'refused' ? 'warn' : 'idle'}>{outcome}</State>
    ),
  },
  { title: 'Changed', cell: (entry: Entry) => <Changed of={entry} /> },
]

/** An object that did not exist before, such as a new key, is named by the request. An id is preceded by its name. */
function subjectOf({ subject, request, before }: Entry): string {
  const namesIn = (json: string | null, fields: readonly string[]): readonly string[] => {
    const found = fieldsOf(json)
    return fields.map((field) => found[field]).filter((it) => typeof it === 'string')
  }
  if (subject === '') return namesIn(request, ['workspace', 'name', 'period']).join(' ')
  return [...namesIn(before, ['workspace', 'name']).filter((name) => !subject.includes(name)), subject].join(' ')
}

function Changed({ of: { request, before, after } }: { of: Entry }) {
  const fields = differences(before, after)
  return (
    <details class="small">
      <summary>{fields.length === 0 ? 'Details' : named(fields.map(([name]) => name))}</summary>
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

const NAMED = 2

const named = (names: readonly string[]): string =>
  names.length > NAMED + 1 ? `${names.slice(0, NAMED).join(', ')} and ${names.length - NAMED} more` : names.join(', ')

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
