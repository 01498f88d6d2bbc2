import { useRoute } from 'preact-iso/router'
import { useState } from 'preact/hooks'
import { Chart, ChartGroup } from '../../shared/chart.tsx'
import { Problem, useAction } from '../../shared/action.tsx'
import { useData } from '../../shared/data.ts'
import { count, milliseconds, percent } from '../../shared/format.ts'
import { counts, durations } from '../../shared/measures.ts'
import { Field, Form } from '../../shared/form.tsx'
import { Code, Empty, Loading, PageHead, Ready, Stale, Table } from '../../shared/parts.tsx'
import { api, type Answer, type Lane, type Sample } from '../api.ts'
import { May } from '../session.tsx'
import { live } from '../live.ts'
import { modelPath } from '../paths.ts'

/** One lane over the last minutes, and what other limits would do. */
export function QueuePage() {
  const lane = useRoute().params['lane'] ?? ''
  const { samples, isStale } = live.use()
  const times = samples.map(({ at }) => at)
  const values = (pick: (it: Lane) => number | null): readonly (number | null)[] =>
    samples.map((sample) => {
      const found = laneIn(sample, lane)
      return found ? pick(found) : null
    })
  const now = samples.length > 0 ? laneIn(samples.at(-1) as Sample, lane) : undefined
  return (
    <>
      <PageHead title={lane} about="The last ten minutes, live.">
        {now === undefined ? null : (
          <a class="button" href={modelPath(modelOf(lane))}>
            Waits and times of earlier days
          </a>
        )}
      </PageHead>
      <Stale is={isStale} />
      {samples.length === 0 ? (
        <Loading />
      ) : now === undefined ? (
        <Empty title="There is no such lane">
          <a href="/console/queues">See all lanes</a>
        </Empty>
      ) : (
        <>
          <ChartGroup>
            <div class="charts">
              <Chart
                title="Requests"
                summary={`${count(online(now))} in flight of ${count(now.limits.max_concurrent_requests)}, ${count(now.queue_depth)} waiting.${now.queue_depth === 0 ? '' : ` The oldest has waited ${milliseconds(now.oldest_wait_ms)}.`} Batches: ${count(now.batch.in_flight_requests)} in flight, ${count(now.batch.queue_depth)} waiting.`}
                times={times}
                unit="second"
                kind="lines"
                measure={counts}
                lines={[
                  { title: 'in flight', values: values(online) },
                  { title: 'waiting', values: values((it) => it.queue_depth) },
                  { title: 'batch in flight', values: values((it) => it.batch.in_flight_requests) },
                  { title: 'batch waiting', values: values((it) => it.batch.queue_depth) },
                ]}
              />
              <Chart
                title="Committed tokens"
                summary={`${count(now.committed_tokens)} of ${count(now.limits.token_budget)}, ${percent(now.committed_tokens / now.limits.token_budget)}.`}
                times={times}
                unit="second"
                kind="lines"
                measure={counts}
                lines={[
                  { title: 'committed', values: values((it) => it.committed_tokens) },
                  { title: 'of batches', values: values((it) => it.batch.committed_tokens) },
                ]}
              />
              <Chart
                title="Wait"
                summary={
                  now.wait_ms_p95 === null
                    ? `No request was admitted in the last five minutes${now.in_flight_requests === 0 ? '' : '; those in flight were admitted before'}.`
                    : `Of the requests admitted in the last five minutes, half waited up to ${milliseconds(now.wait_ms_p50 ?? 0)}, 95 of 100 up to ${milliseconds(now.wait_ms_p95)}.`
                }
                times={times}
                unit="second"
                kind="lines"
                measure={durations}
                lines={[
                  { title: 'median', values: values((it) => it.wait_ms_p50) },
                  { title: '95 %', values: values((it) => it.wait_ms_p95) },
                ]}
              />
            </div>
          </ChartGroup>
          <Limits key={lane} lane={now} />
        </>
      )}
    </>
  )
}

/** Without batch work. */
const online = ({ in_flight_requests: all, batch }: Lane): number => all - batch.in_flight_requests

/** The lane of reserved capacity has the workspace after its model. */
const modelOf = (lane: string): string => lane.split('@')[0] ?? lane

const laneIn = ({ lanes }: Sample, name: string): Lane | undefined => lanes.find((it) => it.lane === name)

const names = {
  token_budget: 'Token budget',
  max_concurrent_requests: 'In flight at most',
  max_queue_depth: 'Waiting at most',
  max_wait_ms: 'Longest wait, ms',
  max_requests_per_workspace: 'Per workspace',
} as const
type LimitName = keyof typeof names
const limitNames = Object.keys(names) as LimitName[]
const limitsWith = <Value,>(pick: (name: LimitName) => Value): Record<LimitName, Value> => ({
  token_budget: pick('token_budget'),
  max_concurrent_requests: pick('max_concurrent_requests'),
  max_queue_depth: pick('max_queue_depth'),
  max_wait_ms: pick('max_wait_ms'),
  max_requests_per_workspace: pick('max_requests_per_workspace'),
})
/** The only limit that can be missing: then a workspace may fill the queue. */
const isOptional = (name: LimitName): boolean => name === 'max_requests_per_workspace'

const limitText = (value: number | undefined): string => (value === undefined ? 'not limited' : count(value))

/** The limits in force, and others that can be simulated before they are set. */
function Limits({ lane }: { lane: Lane }) {
  const inForce = useData((signal) => api('getLaneLimits', { path: { lane: lane.lane }, signal }), [lane.lane])
  return (
    <>
      <Ready of={inForce}>
        {(it) => (it.limits_in_file === null ? null : <SetByOperator lane={it} changed={inForce.reload} />)}
      </Ready>
      <TryLimits lane={lane} changed={inForce.reload} />
    </>
  )
}

function SetByOperator({ lane, changed }: { lane: Answer<'getLaneLimits'>; changed: () => void }) {
  const action = useAction()
  const { limits, limits_in_file: inFile } = lane
  if (inFile === null) return null
  const different = limitNames.filter((name) => limits[name] !== inFile[name])
  return (
    <section class="panel stack" aria-labelledby="in-force">
      <h2 id="in-force">Set by an operator</h2>
      <p class="soft">
        These limits stay in force, also after a restart, until the catalog has other ones for this lane.
      </p>
      <Table
        caption="Where the limits in force differ from the catalog"
        rows={different}
        keyOf={(name) => name}
        columns={[
          { title: 'Limit', cell: (name) => names[name] },
          { title: 'In force', isNumber: true, cell: (name) => limitText(limits[name]) },
          { title: 'In the catalog', isNumber: true, cell: (name) => limitText(inFile[name]) },
        ]}
      />
      <May call="clearLaneLimits">
        <div class="row">
          <button
            type="button"
            disabled={action.isRunning}
            onClick={() =>
              void action.run(async () => {
                await api('clearLaneLimits', { path: { lane: lane.lane } })
                changed()
              })
            }
          >
            Return to the catalog
          </button>
        </div>
      </May>
      <Problem of={action} />
    </section>
  )
}

function TryLimits({ lane, changed }: { lane: Lane; changed: () => void }) {
  const [limits, setLimits] = useState(() => limitsWith((name) => String(lane.limits[name] ?? '')))
  const action = useAction()
  const [hours, setHours] = useState('6')
  const [speed, setSpeed] = useState('')
  const [result, setResult] = useState<Answer<'simulateLimits'>>()
  const [isSet, setIsSet] = useState(false)
  async function simulate(): Promise<void> {
    setIsSet(false)
    const { max_requests_per_workspace: most, ...others } = limitsWith((name) => Number(limits[name]))
    const tried = limits.max_requests_per_workspace === '' ? others : { ...others, max_requests_per_workspace: most }
    const given = speed === '' ? {} : { tokens_per_second: Number(speed) }
    setResult(await api('simulateLimits', { body: { lane: lane.lane, limits: tried, hours: Number(hours), ...given } }))
  }
  async function apply(tried: Lane['limits']): Promise<void> {
    await api('setLaneLimits', { path: { lane: lane.lane }, body: tried })
    setIsSet(true)
    changed()
  }
  return (
    <section class="panel stack" aria-labelledby="limits">
      <h2 id="limits">Try other limits</h2>
      <p class="soft">
        The simulator runs the queue on the requests that really arrived. It changes nothing: you can set limits that
        you like when you have seen what they do.
      </p>
      <Form class="stack" action={action} submit={simulate}>
        <div class="number-fields wide">
          {limitNames.map((name) => (
            <Field key={name} label={names[name]}>
              <input
                name={`limits.${name}`}
                type="number"
                min={name === 'max_queue_depth' ? 0 : 1}
                required={!isOptional(name)}
                placeholder={isOptional(name) ? 'not limited' : undefined}
                value={limits[name]}
                onInput={(event) => setLimits({ ...limits, [name]: event.currentTarget.value })}
              />
            </Field>
          ))}
          <Field label="Last hours">
            <input
              name="hours"
              type="number"
              min={1}
              max={168}
              required
              value={hours}
              onInput={(event) => setHours(event.currentTarget.value)}
            />
          </Field>
          <Field label="Engine, tokens/s">
            <input
              name="tokens_per_second"
              type="number"
              min={1}
              placeholder="as recorded"
              value={speed}
              onInput={(event) => setSpeed(event.currentTarget.value)}
            />
          </Field>
        </div>
        <div>
          <button type="submit" class="primary" disabled={action.isRunning}>
            Simulate
          </button>
        </div>
      </Form>
      <Problem of={action} />
      {result === undefined ? null : (
        <>
          <Comparison of={result} />
          <div class="row">
            <May call="setLaneLimits">
              <button
                type="button"
                disabled={action.isRunning}
                onClick={() => void action.run(() => apply(result.proposed.limits))}
              >
                Set these limits
              </button>
            </May>
            <span role="status">{isSet ? 'The limits are in force.' : ''}</span>
          </div>
        </>
      )}
    </section>
  )
}

type Run = Answer<'simulateLimits'>['current']

const sources = {
  recorded: 'as its answers in this time show',
  asked: 'as you asked',
  assumed: 'which is a guess: no answer in this time was long enough to measure',
} as const

function Comparison({ of: { engine, current, proposed } }: { of: Answer<'simulateLimits'> }) {
  if (current.requests === 0) return <Empty title="No requests arrived in this time" />
  const rows: readonly (readonly [string, (run: Run) => string])[] = [
    ['Requests', (run) => count(run.requests)],
    ['Admitted', (run) => `${count(run.admitted)} (${percent(run.admitted / run.requests)})`],
    ['Refused: queue full', (run) => count(run.queue_full)],
    ['Refused: waited too long', (run) => count(run.overloaded)],
    ['Refused: too large', (run) => count(run.too_large)],
    ['Wait, median', (run) => milliseconds(run.wait_ms?.p50 ?? 0)],
    ['Wait, 95 %', (run) => milliseconds(run.wait_ms?.p95 ?? 0)],
    ['Wait, longest', (run) => milliseconds(run.wait_ms?.max ?? 0)],
    ['Whole answer, 95 %', (run) => milliseconds(run.answer_ms?.p95 ?? 0)],
  ]
  const given = limitNames.filter((name) => proposed.limits[name] !== undefined)
  const yaml = ['limits:', ...given.map((name) => `  ${name}: ${proposed.limits[name]}`)].join('\n')
  return (
    <>
      <p class="soft">
        The engine writes {count(engine.tokens_per_second)} tokens a second, {sources[engine.source]}.
      </p>
      <Table
        caption="With the limits in force, and with yours"
        rows={rows}
        keyOf={([name]) => name}
        columns={[
          { title: 'Figure', cell: ([name]) => name },
          { title: 'Limits in force', isNumber: true, cell: ([, pick]) => pick(current) },
          { title: 'Your limits', isNumber: true, cell: ([, pick]) => pick(proposed) },
        ]}
      />
      <p class="small soft">For weir.yaml:</p>
      <Code text={yaml} label="The limits for weir.yaml" />
    </>
  )
}
