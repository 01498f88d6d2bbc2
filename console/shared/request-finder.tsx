import type { ComponentChildren } from 'preact'
import { useLocation } from 'preact-iso/router'
import { useState } from 'preact/hooks'
import { errorCodes } from '../../src/shared/errors.ts'
import { useAction } from './action.tsx'
import { Field, Form } from './form.tsx'
import { Icon } from './icon.tsx'
import { pulseIcon, searchIcon } from './icons.ts'
import { sydneyInstant } from './format.ts'
import { Paged, usePages, type Page } from './pages.tsx'
import { Empty, Table, type Column } from './parts.tsx'
import type { RequestRow } from './request.tsx'
import { requestColumns } from './request-columns.tsx'

/** Finds requests by who sent them, what they asked for, how they ended, and when. The search is in the address. */

const fields = ['workspace', 'key', 'model', 'outcome', 'status', 'code', 'from', 'from_time', 'to', 'to_time'] as const
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

const outcomes = [
  ['failed', 'any but completed'],
  ['completed', 'completed'],
  ['engine_failed', 'engine failed'],
  ['engine_broke', 'engine broke'],
  ['caller_left', 'caller left'],
  ['interrupted', 'interrupted'],
  ['withheld', 'withheld'],
] as const

/** As the API takes it: without what was left empty. */
export function givenOf({ outcome, status, code, from, from_time, to, to_time, ...search }: Search) {
  const texts = { ...search, from: instantOf(from, from_time), to: instantOf(to, to_time) }
  return {
    ...(Object.fromEntries(Object.entries(texts).filter(([, value]) => value !== '')) as Partial<typeof texts>),
    ...(status === '' ? {} : { status: Number(status) }),
    ...(code === '' ? {} : { code: code as (typeof errorCodes)[number] }),
    ...(outcome === '' ? {} : { outcome: outcome as (typeof outcomes)[number][0] }),
  }
}

/** A day, or a time of that day. */
const instantOf = (day: string, time: string): string => (day === '' || time === '' ? day : sydneyInstant(day, time))

/** What the API of refused requests takes of a search. */
export function refusedQuery(search: Search) {
  const { outcome: _outcome, workspace: _workspace, ...query } = givenOf(search)
  return query
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
  const form = (
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
      <Field label="Outcome">
        <select {...input('outcome')}>
          <option value="">any</option>
          {outcomes.map(([it, title]) => (
            <option key={it} value={it}>
              {title}
            </option>
          ))}
        </select>
      </Field>
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
      {(['from', 'to'] as const).map((end) => (
        <div key={end} class="day-and-time">
          <Field label={end === 'from' ? 'From' : 'To'}>
            <input {...input(end)} type="date" />
          </Field>
          <Field label={end === 'from' ? 'From time' : 'To time'}>
            <input {...input(`${end}_time`)} type="time" disabled={typed[end] === ''} />
          </Field>
        </div>
      ))}
      <div class="row">
        <button type="submit" class="primary">
          Search
        </button>
        <button type="button" onClick={() => show(nothing)}>
          Clear
        </button>
        <span class="small soft">Days and times in Sydney; a day without a time is the whole day.</span>
      </div>
    </Form>
  )
  // On a phone, it would fill the screen before the first request.
  return isNarrow() ? (
    <details class="stack">
      <summary class="button">
        <Icon of={searchIcon} />
        {isSearching(search) ? 'Change the search' : 'Search'}
      </summary>
      {form}
    </details>
  ) : (
    form
  )
}

const isNarrow = (): boolean => matchMedia('(max-width: 760px)').matches
const isSearching = (search: Search): boolean => Object.values(search).some((value) => value !== '')

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
  whose,
}: {
  search: Search
  load: (before: string | undefined, signal: AbortSignal) => Promise<Page<Row, string>>
  whose: Column<Row>
}) {
  const pages = usePages(load, [search])
  return (
    <Paged of={pages}>
      {(rows, isLast) =>
        rows.length === 0 ? (
          <Empty
            icon={pulseIcon}
            title={
              !isLast
                ? 'None so far; look further with "Older"'
                : isSearching(search)
                  ? 'No request fits'
                  : 'There are no requests yet'
            }
          >
            {isSearching(search) ? (
              'Leave a field empty, or choose other days.'
            ) : (
              <a href="/console">Send the first one</a>
            )}
          </Empty>
        ) : (
          <Table caption="Requests" rows={rows} keyOf={(it) => it.request_id} columns={requestColumns([whose])} />
        )
      }
    </Paged>
  )
}
