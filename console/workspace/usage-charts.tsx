import { useState } from 'preact/hooks'
import { Chart, type Line } from '../shared/chart.tsx'
import { aud, brief, count, milliseconds, percent } from '../shared/format.ts'
import { Segments } from '../shared/parts.tsx'
import type { Answer } from './api.ts'

/** Usage over time: quantities, cost, latency, and failures. */

type Report = Answer<'usageReport'>
type Latency = Answer<'latencyReport'>
type Bucket = Latency['buckets'][number]
type Share = 'p50' | 'p95'

const filled = (values: readonly (number | null)[]): readonly number[] => values.map((it) => it ?? 0)

/** A value for each time; null where there is none. */
function along<Point extends { at: number }>(
  times: readonly number[],
  points: readonly Point[],
  pick: (point: Point) => number | null,
): readonly (number | null)[] {
  const byTime = new Map(points.map((point) => [point.at, pick(point)]))
  return times.map((at) => byTime.get(at) ?? null)
}

const cachedShare = (of: Report['total']): number | null =>
  of.input_tokens > 0 ? of.cached_input_tokens / of.input_tokens : null

export function UsageCharts({ report, nameOf }: { report: Report; nameOf: (id: string) => string }) {
  const { times, unit, total, series, groups } = report
  /** A line for each of the most expensive, and one for all others. */
  const byGroup = (pick: (point: { requests: number; amount: string }) => number): readonly Line[] => {
    const lines = groups.map((it) => ({ title: nameOf(it.group), values: filled(along(times, it.series, pick)) }))
    const others = filled(along(times, series, pick)).map((value, index) =>
      Math.max(0, value - lines.reduce((sum, { values }) => sum + (values[index] ?? 0), 0)),
    )
    return others.some((it) => it > 1e-12) ? [...lines, { title: 'others', values: others }] : lines
  }
  const tokens = (pick: (point: Report['series'][number]) => number): readonly number[] =>
    filled(along(times, series, pick))
  const first = groups[0]
  return (
    <div class="charts">
      <Chart
        title="Cost"
        summary={`${aud(total.amount)} in all${first ? `; most for ${nameOf(first.group)}, ${aud(first.amount)}` : ''}.`}
        times={times}
        unit={unit}
        format={aud}
        lines={byGroup(({ amount }) => Number(amount))}
      />
      <Chart
        title="Requests"
        summary={`${count(total.requests)} in all${first ? `; ${count(first.requests)} for ${nameOf(first.group)}` : ''}.`}
        times={times}
        unit={unit}
        format={brief}
        lines={byGroup(({ requests }) => requests)}
      />
      <Chart
        title="Tokens"
        summary={`${count(total.input_tokens)} in, ${count(total.cached_input_tokens)} of them cached; ${count(total.output_tokens)} out.`}
        times={times}
        unit={unit}
        format={brief}
        lines={[
          { title: 'input', values: tokens((it) => it.input_tokens) },
          { title: 'output', values: tokens((it) => it.output_tokens) },
          { title: 'cached', values: tokens((it) => it.cached_input_tokens) },
        ]}
      />
      <Chart
        title="Cached share"
        summary={`${percent(cachedShare(total) ?? 0)} of the input was cached.`}
        times={times}
        unit={unit}
        format={percent}
        lines={[{ title: 'cached share of the input', values: along(times, series, cachedShare) }]}
      />
    </div>
  )
}

export function TimesAndFailures({
  report: { times, unit },
  latency,
  nameOf,
}: {
  report: Report
  latency: Latency
  nameOf: (id: string) => string
}) {
  const [share, setShare] = useState<Share>('p95')
  /** A line for each of the most expensive, and one for all if there are several. */
  const byGroup = (pick: (bucket: Bucket) => number | null): readonly Line[] => {
    const lines = latency.groups.map(({ group, buckets }) => ({
      title: nameOf(group),
      values: along(times, buckets, pick),
    }))
    return lines.length === 1 ? lines : [...lines, { title: 'all', values: along(times, latency.buckets, pick) }]
  }
  const failed = latency.buckets.reduce((sum, it) => sum + it.failed, 0)
  const failures = byGroup((it) => it.failed / it.requests)
  const durations = [
    ['First token', byGroup((it) => it.first_token_ms[share])],
    ['Whole request', byGroup((it) => it.duration_ms[share])],
    ['Queue wait', byGroup((it) => it.queue_wait_ms[share])],
  ] as const
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
        {durations.map(([title, lines]) => (
          <Chart
            key={title}
            title={title}
            summary={`${share === 'p50' ? 'Half of the requests take' : '95 of 100 requests take'} no longer. ${highest(lines, milliseconds)}`}
            times={times}
            unit={unit}
            format={milliseconds}
            lines={lines}
          />
        ))}
        <Chart
          title="Failed"
          summary={`${count(failed)} of these ${count(latency.requests)} did not complete. ${highest(failures, percent)}`}
          times={times}
          unit={unit}
          format={percent}
          lines={failures}
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
  return top.value === 0 ? '' : `Highest: ${format(top.value)}, ${top.title}.`
}
