import { Chart, othersLine, type Line } from './chart.tsx'
import { colourOf, type Named } from './chart-colours.ts'
import { aud, count, percent, picoOf } from './format.ts'
import { counts, money, shares } from './measures.ts'

/** Usage over time: cost and requests of those that cost most, tokens, and how much was cached. */

interface Sums {
  readonly requests: number
  readonly input_tokens: number
  readonly cached_input_tokens: number
  readonly output_tokens: number
  readonly amount: string
}

export interface UsageReport {
  readonly unit: 'hour' | 'day'
  readonly times: readonly number[]
  readonly total: Sums
  readonly series: readonly (Sums & { readonly at: number })[]
  readonly groups: readonly (Sums & {
    readonly group: string
    readonly series: readonly { readonly at: number; readonly requests: number; readonly amount: string }[]
  })[]
}

/** A value for each time; null where there is none. */
export function along<Point extends { readonly at: number }>(
  times: readonly number[],
  points: readonly Point[],
  pick: (point: Point) => number | null,
): readonly (number | null)[] {
  const byTime = new Map(points.map((point) => [point.at, pick(point)]))
  return times.map((at) => byTime.get(at) ?? null)
}

const filled = (values: readonly (number | null)[]): readonly number[] => values.map((it) => it ?? 0)

const cachedShare = (of: Sums): number | null => (of.input_tokens > 0 ? of.cached_input_tokens / of.input_tokens : null)

export interface GroupNames {
  /** What the report is grouped by. */
  readonly kind: Named
  readonly nameOf: (id: string) => string
}

/** A line for each of those that cost most, and one for all others. */
function linesOf(
  { times, series, groups }: UsageReport,
  { kind, nameOf }: GroupNames,
  pick: (point: { readonly requests: number; readonly amount: string }) => number,
): readonly Line[] {
  const lines = groups.map((it) => ({
    title: nameOf(it.group),
    values: filled(along(times, it.series, pick)),
    colour: colourOf(kind, it.group),
  }))
  const others = filled(along(times, series, pick)).map((value, index) =>
    Math.max(0, value - lines.reduce((sum, { values }) => sum + (values[index] ?? 0), 0)),
  )
  return others.some((it) => it > 0) ? [...lines, othersLine(others)] : lines
}

interface UsageChartProps extends GroupNames {
  readonly report: UsageReport
}

export function CostChart({ report, ...names }: UsageChartProps) {
  const [first, second] = report.groups
  return (
    <Chart
      title="Cost"
      summary={`${aud(report.total.amount)} in all${first && second ? `; most for ${names.nameOf(first.group)}, ${aud(first.amount)}` : ''}.`}
      times={report.times}
      unit={report.unit}
      kind="bars"
      measure={money}
      lines={linesOf(report, names, ({ amount }) => picoOf(amount))}
    />
  )
}

export function RequestsChart({ report, title = 'Requests', ...names }: UsageChartProps & { title?: string }) {
  const [first, second] = report.groups
  return (
    <Chart
      title={title}
      summary={`${count(report.total.requests)} in all${first && second ? `; ${count(first.requests)} for ${names.nameOf(first.group)}` : ''}.`}
      times={report.times}
      unit={report.unit}
      kind="bars"
      measure={counts}
      lines={linesOf(report, names, ({ requests }) => requests)}
    />
  )
}

export function UsageCharts(props: UsageChartProps) {
  const { times, unit, total, series } = props.report
  const tokens = (pick: (point: UsageReport['series'][number]) => number): readonly number[] =>
    filled(along(times, series, pick))
  return (
    <div class="charts">
      <CostChart {...props} />
      <RequestsChart {...props} />
      <Chart
        title="Tokens"
        summary={`${count(total.input_tokens)} in, ${count(total.cached_input_tokens)} of them cached; ${count(total.output_tokens)} out.`}
        times={times}
        unit={unit}
        kind="bars"
        measure={counts}
        lines={[
          { title: 'cached input', values: tokens((it) => it.cached_input_tokens) },
          { title: 'other input', values: tokens((it) => it.input_tokens - it.cached_input_tokens) },
          { title: 'output', values: tokens((it) => it.output_tokens) },
        ]}
      />
      <Chart
        title="Cached share"
        summary={`${percent(cachedShare(total) ?? 0)} of the input was cached.`}
        times={times}
        unit={unit}
        kind="lines"
        measure={shares}
        lines={[{ title: 'cached share of the input', values: along(times, series, cachedShare) }]}
      />
    </div>
  )
}
