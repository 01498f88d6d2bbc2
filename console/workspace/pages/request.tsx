import { useRoute } from 'preact-iso/router'
import { Failure } from '../../shared/client.ts'
import { useData } from '../../shared/data.ts'
import { count, exactTime, milliseconds, picoAud, time } from '../../shared/format.ts'
import { OutcomeState } from '../../shared/outcome.tsx'
import { Facts, PageHead, Ready } from '../../shared/parts.tsx'
import { ErrorCode } from '../../shared/refused.tsx'
import { api, type Answer } from '../api.ts'
import { modelPath } from '../model-facts.ts'
import { type RequestRow, RequestSearch } from '../requests.tsx'

/** One request with everything that happened to it. */
export function RequestPage() {
  const id = useRoute().params['id'] ?? ''
  const loaded = useData((signal) => find(id, signal), [id])
  return (
    <>
      <PageHead title="Request" about={<code class="wrap">{id}</code>}>
        <RequestSearch />
      </PageHead>
      <Ready of={loaded}>{({ row, refusal }) => (row ? <Request row={row} /> : <Refused request={refusal} />)}</Ready>
    </>
  )
}

type Refusal = Answer<'usageRefused'>['newest'][number]
type Found = { row: RequestRow; refusal?: undefined } | { row?: undefined; refusal: Refusal }

/** The row of a request; or why it was refused, if that is still known. */
async function find(id: string, signal: AbortSignal): Promise<Found> {
  try {
    return { row: await api('usageRequestId', { path: { request_id: id }, signal }) }
  } catch (failure) {
    if (!(failure instanceof Failure) || failure.status !== 404) throw failure
    const { newest } = await api('usageRefused', { query: { request_id: id }, signal })
    if (newest[0]) return { refusal: newest[0] }
    throw failure
  }
}

/** It reached no model, so it has no timeline and no figures. */
function Refused({ request }: { request: Refusal }) {
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
          ...(request.model === null
            ? []
            : [
                [
                  'Model',
                  <a key="model" href={modelPath(request.model)}>
                    {request.model}
                  </a>,
                ] as const,
              ]),
          ['Key', <code key="key">{request.key_id}</code>],
          ['Amount', 'Nothing: it reached no model.'],
        ]}
      />
    </section>
  )
}

/** What happened when. The ledger records the time of admission, and how long everything took. */
export function momentsOf(row: RequestRow): readonly (readonly [title: string, at: number, note: string])[] {
  const admitted = Date.parse(row.started)
  const arrived = admitted - row.queue_wait_ms
  return [
    ['Arrived', arrived, 'The whole body had been read.'],
    ...(row.queue_wait_ms > 0
      ? [['Queued', arrived, `Waited ${milliseconds(row.queue_wait_ms)} for its turn.`] as const]
      : []),
    ['Admitted', admitted, 'Sent to the engine.'],
    ...(row.first_token_ms === null
      ? []
      : [
          [
            'First token',
            admitted + row.first_token_ms,
            `${milliseconds(row.first_token_ms)} after admission.`,
          ] as const,
        ]),
    ['Ended', admitted + row.duration_ms, row.outcome.replaceAll('_', ' ')],
    ['Settled', Date.parse(row.settled), `${picoAud(row.amount_pico_aud)} at price version ${row.price_version}.`],
  ]
}

function Request({ row }: { row: RequestRow }) {
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
            [
              'Model',
              <a key="model" href={modelPath(row.model)}>
                {row.model}
              </a>,
            ],
            ['Endpoint', <code key="endpoint">{row.endpoint}</code>],
            ['Key', <code key="key">{row.key_id}</code>],
            ['Lane', row.lane],
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
