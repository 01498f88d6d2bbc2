import { useLocation, useRoute } from 'preact-iso/router'
import type { Operations } from '../generated/console-api.ts'
import { Failure } from './client.ts'
import { useData } from './data.ts'
import { count, exactTime, milliseconds, percent, picoAud, time } from './format.ts'
import { OutcomeState } from './outcome.tsx'
import { Empty, Facts, Figures, PageHead, Ready } from './parts.tsx'
import { searchIcon } from './icons.ts'
import { ErrorCode, type RefusedRequest } from './refused.tsx'
import { requestPath } from './request-path.ts'

/** One request with everything that happened to it, settled or refused. Both consoles have this page. */

export type RequestRow = Operations['requests']['answer']['data'][number] & { readonly workspace?: string | null }
type Refusal = RefusedRequest & { readonly workspace?: string | null }

/** The pages of what a request is about, as far as the console has them. */
interface Links {
  readonly model?: (slug: string) => string
  readonly workspace?: (name: string) => string
}

export interface RequestSource {
  /** Rejects with 404 if there is none. */
  readonly row: (id: string, signal: AbortSignal) => Promise<RequestRow>
  /** undefined if it was not refused, or is no longer kept. */
  readonly refusal: (id: string, signal: AbortSignal) => Promise<Refusal | undefined>
}

export function RequestPage({ source, linkTo }: { source: RequestSource; linkTo: Links }) {
  const id = useRoute().params['id'] ?? ''
  const loaded = useData((signal) => find(source, id, signal), [id])
  return (
    <>
      <PageHead title="Request" about={<code class="wrap">{id}</code>}>
        <RequestSearch />
      </PageHead>
      <Ready of={loaded}>
        {({ row, refusal }) =>
          row ? (
            <RequestDetails row={row} linkTo={linkTo} />
          ) : refusal ? (
            <RefusedDetails request={refusal} linkTo={linkTo} />
          ) : (
            <Empty icon={searchIcon} title="There is no request with this id">
              Its id is in the header X-Request-Id of each answer. A request is here once it is settled. Of those that
              were refused, the newest 20 of each error code are kept, for 31 days.
              <a href="/console/requests">Search by key, model, outcome or time</a>
            </Empty>
          )
        }
      </Ready>
    </>
  )
}

/** The id is in the X-Request-Id of every response. */
export function RequestSearch() {
  const { route } = useLocation()
  return (
    <form
      class="row"
      role="search"
      onSubmit={(event) => {
        event.preventDefault()
        const input = event.currentTarget.elements.namedItem('id') as HTMLInputElement
        if (input.value.trim() !== '') route(requestPath(input.value.trim()))
      }}
    >
      <input
        name="id"
        class="request-id"
        aria-label="Find a request by its id"
        placeholder="Request id"
        required
        spellcheck={false}
        autocomplete="off"
      />
      <button type="submit">Find</button>
    </form>
  )
}

type Found = { row: RequestRow; refusal?: undefined } | { row?: undefined; refusal: Refusal | undefined }

/** The row of a request; or why it was refused; or neither. */
async function find(source: RequestSource, id: string, signal: AbortSignal): Promise<Found> {
  try {
    return { row: await source.row(id, signal) }
  } catch (failure) {
    if (!(failure instanceof Failure) || failure.status !== 404) throw failure
    return { refusal: await source.refusal(id, signal) }
  }
}

function Named({ name, path }: { name: string; path: string | undefined }) {
  return path === undefined ? <>{name}</> : <a href={path}>{name}</a>
}

function workspaceFact({ workspace }: { workspace?: string | null }, linkTo: Links) {
  if (!workspace) return []
  return [['Workspace', <Named key="workspace" name={workspace} path={linkTo.workspace?.(workspace)} />] as const]
}

/** It reached no model, so it has no timeline and no figures. */
function RefusedDetails({ request, linkTo }: { request: Refusal; linkTo: Links }) {
  return (
    <section class="panel stack" aria-labelledby="refused">
      <h2 id="refused">Refused</h2>
      <p>{request.reason}</p>
      <Facts
        of={[
          ['Error', <ErrorCode key="error" of={request} />],
          ...(request.param === null ? [] : [['Parameter', <code key="param">{request.param}</code>] as const]),
          ['Time', `${time(request.at)} in Sydney`],
          ['Endpoint', <code key="endpoint">{request.endpoint ?? 'no such path'}</code>],
          ...workspaceFact(request, linkTo),
          ...(request.model === null
            ? []
            : [['Model', <Named key="model" name={request.model} path={linkTo.model?.(request.model)} />] as const]),
          ['Key', request.key_id === null ? 'no valid key' : <code key="key">{request.key_id}</code>],
          ['Amount', 'Nothing: it reached no model.'],
        ]}
      />
    </section>
  )
}

/** What happened when. The ledger records the time of admission, and how long everything took. */
function momentsOf(row: RequestRow): readonly (readonly [title: string, at: number, note: string])[] {
  const admitted = Date.parse(row.started)
  return [
    ['Arrived', admitted - row.queue_wait_ms, 'Its body was read.'],
    ['Admitted', admitted, 'Sent to the engine.'],
    ...(row.first_token_ms === null
      ? []
      : [['First token', admitted + row.first_token_ms, 'The answer begins.'] as const]),
    ['Ended', admitted + row.duration_ms, row.outcome.replaceAll('_', ' ')],
    ['Settled', Date.parse(row.settled), `At price version ${row.price_version}.`],
  ]
}

/** Where the time went, with the share of each part. */
function Times({ row: { queue_wait_ms: wait, first_token_ms: first, duration_ms: duration } }: { row: RequestRow }) {
  const whole = wait + duration
  const part = (title: string, ms: number) => [title, milliseconds(ms), percent(whole === 0 ? 0 : ms / whole)] as const
  return (
    <Figures
      of={[
        ['Whole request', milliseconds(whole)],
        part('In the queue', wait),
        ...(first === null
          ? [part('At the engine', duration)]
          : [part('To the first token', first), part('From there to the end', duration - first)]),
      ]}
    />
  )
}

function RequestDetails({ row, linkTo }: { row: RequestRow; linkTo: Links }) {
  return (
    <>
      <Times row={row} />
      <Details row={row} linkTo={linkTo} />
    </>
  )
}

function Details({ row, linkTo }: { row: RequestRow; linkTo: Links }) {
  return (
    <div class="columns">
      <section class="panel stack" aria-labelledby="timeline">
        <h2 id="timeline">Timeline</h2>
        <p class="small soft">{time(row.started)} in Sydney</p>
        <ol class="timeline">
          {momentsOf(row).map(([title, at, note]) => (
            <li key={title}>
              <strong>{title}</strong>
              <span class="soft">{note}</span>
              <span class="mono">{exactTime(at)}</span>
            </li>
          ))}
        </ol>
      </section>
      <section class="panel stack" aria-labelledby="figures">
        <h2 id="figures">Figures</h2>
        <Facts
          of={[
            ['Outcome', <OutcomeState key="outcome" of={row} />],
            ['Amount', `${picoAud(row.amount_pico_aud)} (${count(Number(row.amount_pico_aud))} pico-AUD)`],
            ['Price version', String(row.price_version)],
            ...workspaceFact(row, linkTo),
            ['Model', <Named key="model" name={row.model} path={linkTo.model?.(row.model)} />],
            ['Endpoint', <code key="endpoint">{row.endpoint}</code>],
            ['Service tier', row.service_tier],
            [
              'Key',
              <a key="key" href={`/console/requests?key=${encodeURIComponent(row.key_id)}`}>
                <code>{row.key_id}</code>
              </a>,
            ],
            ...(row.lane === row.model ? [] : [['Lane', row.lane] as const]),
            ['Input', `${count(row.input_tokens)} tokens, ${count(row.cached_input_tokens)} of them cached`],
            ['Output', `${count(row.output_tokens)} tokens, at most ${count(row.max_tokens)}`],
            ...(row.images > 0 ? [['Images', count(row.images)] as const] : []),
            ...(row.audio_ms > 0 ? [['Audio', milliseconds(row.audio_ms)] as const] : []),
            ...(row.estimated ? [['Figures', 'Estimated: the engine reported none.'] as const] : []),
            ...(row.corrects === undefined ? [] : [['Corrects', row.corrects] as const]),
            ...(row.reason === undefined ? [] : [['Reason', row.reason] as const]),
          ]}
        />
      </section>
    </div>
  )
}
