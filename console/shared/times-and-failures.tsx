import { useState } from 'preact/hooks'
import { allLine, Chart, type Line } from './chart.tsx'
import { colourOf } from './chart-colours.ts'
import { count, milliseconds, percent } from './format.ts'
import { durations, shares, tokensPerSecond } from './measures.ts'
import { Segments } from './parts.tsx'
import { along, type GroupNames, type UsageReport } from './usage-charts.tsx'

/** How long requests waited and took, and how many failed. */

interface Times {
  readonly p50: number | null
  readonly p95: number | null
}

interface Bucket {
  readonly at: number
  readonly requests: number
  readonly failed: number
  readonly queue_wait_ms: Times
  readonly first_token_ms: Times
  readonly duration_ms: Times
  readonly tokens_per_second: Times
}

export interface Latency {
  readonly requests: number
  readonly of_requests: number
  readonly is_complete: boolean
  readonly buckets: readonly Bucket[]
  readonly groups: readonly { readonly group: string; readonly buckets: readonly Bucket[] }[]
}

type Share = 'p50' | 'p95'

export function TimesAndFailures({
  report: { times, unit },
  latency,
  kind,
  nameOf,
}: GroupNames & {
  report: Pick<UsageReport, 'times' | 'unit'>
  latency: Latency
}) {
  const [share, setShare] = useState<Share>('p95')
  /** A line for each of the most expensive, and one for all if there are several. */
  const byGroup = (pick: (bucket: Bucket) => number | null): readonly Line[] => {
    const lines = latency.groups.map(({ group, buckets }) => ({
      title: nameOf(group),
      values: along(times, buckets, pick),
      colour: colourOf(kind, group),
    }))
    return lines.length === 1 ? lines : [...lines, allLine(along(times, latency.buckets, pick))]
  }
  const failed = latency.buckets.reduce((sum, it) => sum + it.failed, 0)
  const failures = byGroup((it) => it.failed / it.requests)
  const perTitle = [
    ['First token', byGroup((it) => it.first_token_ms[share])],
    ['Whole request', byGroup((it) => it.duration_ms[share])],
    ['Queue wait', byGroup((it) => it.queue_wait_ms[share])],
  ] as const
  const speeds = byGroup((it) => it.tokens_per_second[share])
  const requests = new Map(latency.buckets.map((it) => [it.at, it.requests]))
  const noteOf = (at: number): string => {
    const measured = requests.get(at) ?? 0
    return measured === 0 ? '' : `From ${count(measured)} ${measured === 1 ? 'request' : 'requests'}.`
  }
  return (
    <section class="stack" aria-labelledby="times">
      <div class="row apart">
        <div>
          <h2 id="times">Times and failures</h2>
          <p class="small soft">{sourceOf(latency)}</p>
        </div>
        <Segments
          label="Times"
          value={share}
          options={[
            ['p50', 'Median'],
            ['p95', '95 of 100'],
          ]}
          choose={setShare}
        />
      </div>
      <div class="charts">
        {perTitle.map(([title, lines]) => (
          <Chart
            key={title}
            title={title}
            summary={`${share === 'p50' ? 'Half of the requests take' : '95 of 100 requests take'} no longer. ${highest(lines, milliseconds)}`}
            times={times}
            unit={unit}
            kind="lines"
            measure={durations}
            lines={lines}
            noteOf={noteOf}
          />
        ))}
        {speeds.some(({ values }) => values.some((it) => it !== null)) ? (
          <Chart
            title="Speed"
            summary={`Output tokens a second, from admission to the end. ${share === 'p50' ? 'Half of the requests are' : '95 of 100 requests are'} at least as fast.`}
            times={times}
            unit={unit}
            kind="lines"
            measure={tokensPerSecond}
            lines={speeds}
            noteOf={noteOf}
          />
        ) : null}
        <Chart
          title="Failed"
          summary={`${count(failed)} of these ${count(latency.requests)} did not complete. ${highest(failures, percent)}`}
          times={times}
          unit={unit}
          kind="lines"
          measure={shares}
          lines={failures}
          noteOf={noteOf}
        />
      </div>
    </section>
  )
}

function sourceOf({ requests, of_requests, is_complete }: Latency): string {
  if (of_requests === 1) return 'From the one request of this period.'
  if (is_complete) return `From all ${count(requests)} requests of this period.`
  return `From ${count(requests)} of the ${count(of_requests)} requests of this period, spread over it: the newest of each part.`
}

/** The highest point, and whose it is. */
function highest(lines: readonly Line[], format: (value: number) => string): string {
  const peaks = lines.map(({ title, values }) => ({ title, value: Math.max(...values.map((it) => it ?? 0)) }))
  const top = peaks.reduce((one, other) => (other.value > one.value ? other : one), { title: '', value: 0 })
  return top.value === 0 ? '' : `Highest: ${format(top.value)}${lines.length === 1 ? '' : `, ${top.title}`}.`
}
