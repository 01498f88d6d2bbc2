import type { ComponentChildren } from 'preact'
import { useLocation } from 'preact-iso/router'
import { useState } from 'preact/hooks'
import { errorCodes } from '../../src/shared/errors.ts'
import { useAction } from './action.tsx'
import { Field, Form } from './form.tsx'
import { pulseIcon } from './icons.ts'
import { brief, milliseconds, picoAud } from './format.ts'
import { OutcomeState } from './outcome.tsx'
import { Paged, usePages, type Page } from './pages.tsx'
import { Empty, Moment, Table, type Column } from './parts.tsx'
import type { RefusedRequest } from './refused.tsx'
import type { RequestRow } from './request.tsx'
import { requestPath } from './request-path.ts'

/** Finds requests by who sent them, what they asked for, how they ended, and when. The search is in the address. */

const fields = ['workspace', 'key', 'model', 'status', 'code', 'from', 'to', 'outcome'] as const
type Search = Readonly<Record<(typeof fields)[number], string>>

export function useSearch(): readonly [search: Search, show: (search: Search) => void] {
  const { query, route } = useLocation()
  const search = Object.fromEntries(fields.map((name) => [name, query[name] ?? ''])) as Search
  const show = (next: Search): void => {
    const given = Object.entries(next).filter(([, value]) => value !== '')
    route(`/console/requests?${new URLSearchParams(given).toString()}`)
  }
  return [search, show]
}

/** As the API takes it: without what was left empty. */
export function givenOf({ outcome, status, code, ...search }: Search) {
  const texts = Object.fromEntries(Object.entries(search).filter(([, value]) => value !== ''))
  return {
    ...(texts as Partial<Omit<Search, 'outcome' | 'status' | 'code'>>),
    ...(status === '' ? {} : { status: Number(status) }),
    ...(code === '' ? {} : { code: code as (typeof errorCodes)[number] }),
    ...(outcome === 'failed' ? { outcome: 'failed' as const } : {}),
  }
}

/** What the API of refused requests takes of a search. The rest is left to `fitting`. */
export function refusedQuery(search: Search) {
  const { status: _status, outcome: _outcome, model: _model, workspace: _workspace, ...query } = givenOf(search)
  return { ...query, limit: REFUSED_READ }
}

/** More than are kept of a workspace. */
const REFUSED_READ = 1000

export function fitting<Request extends RefusedRequest>(
  { model, status }: Search,
  requests: readonly Request[],
): readonly Request[] {
  return requests.filter(
    (it) => (model === '' || it.model === model) && (status === '' || it.http_status === Number(status)),
  )
}

export function SearchForm({
  search,
  show,
  whose,
  models,
}: {
  search: Search
  show: (search: Search) => void
  /** Whose requests: a field for the workspace, or for one of its keys. */
  whose: (value: (name: keyof Search) => Bound) => ComponentChildren
  models: readonly string[]
}) {
  const [typed, setTyped] = useState(search)
  const action = useAction()
  const bound = (name: keyof Search): Bound => ({
    name,
    value: typed[name],
    choose: (value) => setTyped({ ...typed, [name]: value }),
  })
  const input = (name: keyof Search) => ({
    name,
    value: typed[name],
    onInput: ({ currentTarget }: { currentTarget: HTMLInputElement | HTMLSelectElement }) =>
      setTyped({ ...typed, [name]: currentTarget.value }),
  })
  return (
    <Form class="search-form" role="search" action={action} submit={async () => show(typed)}>
      {whose(bound)}
      <Field label="Model">
        <input {...input('model')} list="search-models" maxLength={200} spellcheck={false} autocomplete="off" />
      </Field>
      <datalist id="search-models">
        {models.map((it) => (
          <option key={it} value={it} />
        ))}
      </datalist>
      <Field label="Status">
        <input {...input('status')} type="number" min={100} max={599} />
      </Field>
      <Field label="Error code">
        <select {...input('code')}>
          <option value="">any</option>
          {errorCodes.map((it) => (
            <option key={it}>{it}</option>
          ))}
        </select>
      </Field>
      <Field label="From">
        <input {...input('from')} type="date" />
      </Field>
      <Field label="To">
        <input {...input('to')} type="date" />
      </Field>
      <div class="row">
        <button type="submit" class="primary">
          Search
        </button>
        <button type="button" onClick={() => show(nothing)}>
          Clear
        </button>
        <label class="inline">
          <input
            type="checkbox"
            checked={typed.outcome === 'failed'}
            onInput={({ currentTarget }) => setTyped({ ...typed, outcome: currentTarget.checked ? 'failed' : '' })}
          />
          Only requests that did not complete
        </label>
      </div>
    </Form>
  )
}

const nothing = Object.fromEntries(fields.map((name) => [name, ''])) as Search

/** A field of the form that is made elsewhere. */
export interface Bound {
  readonly name: string
  readonly value: string
  readonly choose: (value: string) => void
}

/** The newest first, page by page. */
export function FoundRequests<Row extends RequestRow>({
  search,
  load,
  columns = [],
}: {
  search: Search
  load: (before: string | undefined, signal: AbortSignal) => Promise<Page<Row, string>>
  /** After the model. */
  columns?: readonly Column<Row>[]
}) {
  const pages = usePages(load, [search])
  const isSearching = Object.values(search).some((value) => value !== '')
  return (
    <Paged of={pages}>
      {(rows, isLast) =>
        rows.length === 0 ? (
          <Empty
            icon={pulseIcon}
            title={
              !isLast
                ? 'None among the newest 5,000; look further with "Older"'
                : isSearching
                  ? 'No request fits'
                  : 'There are no requests yet'
            }
          >
            {isSearching ? 'Leave a field empty, or choose other days.' : <a href="/console">Send the first one</a>}
          </Empty>
        ) : (
          <Table
            caption="Requests"
            rows={rows}
            keyOf={(it) => it.request_id}
            columns={[
              {
                title: 'Settled',
                cell: (row: Row) => (
                  <a href={requestPath(row.request_id)}>
                    <Moment at={row.settled} />
                  </a>
                ),
              },
              { title: 'Outcome', cell: (row) => <OutcomeState of={row} /> },
              { title: 'Model', cell: (row) => <span class="name-cell">{row.model}</span> },
              ...columns,
              { title: 'Tokens', isNumber: true, cell: (row) => brief(row.input_tokens + row.output_tokens) },
              { title: 'Took', isNumber: true, cell: (row) => milliseconds(row.duration_ms) },
              { title: 'Cost', isNumber: true, cell: (row) => picoAud(row.amount_pico_aud) },
            ]}
          />
        )
      }
    </Paged>
  )
}
