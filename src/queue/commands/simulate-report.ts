import type { LaneLimits } from '../lane.ts'
import type { BatchLoad, Moment, QueueReport, Spread } from '../queue-simulation.ts'
import { renderTable, type Column } from '../../cli/terminal/table.ts'
import type { View } from '../../cli/terminal/view.ts'

/** The report of a single run, with a small chart. */
export function singleRun(report: QueueReport, durationMs: number): string {
  const { limits } = report
  const chart = (label: string, key: keyof Moment, whole: number): string => {
    const values = report.moments.map((moment) => moment[key])
    const figures = `mean ${count(mean(values))}, peak ${count(Math.max(...values))} of ${count(whole)}`
    return `  ${label}: ${figures}\n  ${sparkline(values, whole)}`
  }
  const part = (label: string, requests: number): string =>
    `  ${label.padEnd(17)} ${count(requests).padStart(9)}  ${percent(ofAll(report, requests)).padStart(7)}`
  return [
    `limits   token budget ${count(limits.tokenBudget)}, ${count(limits.maxConcurrentRequests)} concurrent, ` +
      `queue ${count(limits.maxQueueDepth)}, max wait ${time(limits.maxWaitMs)}`,
    '',
    `requests            ${count(report.requests).padStart(9)}`,
    part('admitted at once', report.admittedAtOnce),
    part('after a wait', report.admittedAfterWait),
    part('queue_full', report.queueFull),
    part('model_overloaded', report.overloaded),
    part('too large', report.tooLarge),
    '',
    `wait     ${percentiles(report.waitMs)}`,
    `answer   ${percentiles(report.answerMs)}`,
    `in use   concurrency ${percent(report.concurrencyUse)}, token budget ${percent(report.budgetUse)}`,
    `held     by concurrency ${percent(report.heldByConcurrency)} of the time, ` +
      `by the token budget ${percent(report.heldByBudget)}`,
    `output   ${count(report.outputTokensPerSecond)} tokens a second`,
    '',
    `over ${time(durationMs)}`,
    chart('in flight', 'inFlightRequests', limits.maxConcurrentRequests),
    chart('committed tokens', 'committedTokens', limits.tokenBudget),
    chart('queue', 'queueDepth', limits.maxQueueDepth),
  ].join('\n')
}

const LIMITS: readonly (Column<QueueReport> & { readonly words: (limits: LaneLimits) => string })[] = [
  {
    title: 'TOKENS',
    cell: ({ limits }) => count(limits.tokenBudget),
    words: ({ tokenBudget }) => `token budget ${count(tokenBudget)}`,
  },
  {
    title: 'AT ONCE',
    cell: ({ limits }) => count(limits.maxConcurrentRequests),
    words: ({ maxConcurrentRequests }) => `${count(maxConcurrentRequests)} concurrent`,
  },
  {
    title: 'DEPTH',
    cell: ({ limits }) => count(limits.maxQueueDepth),
    words: ({ maxQueueDepth }) => `queue ${count(maxQueueDepth)}`,
  },
  {
    title: 'MAX WAIT',
    cell: ({ limits }) => time(limits.maxWaitMs),
    words: ({ maxWaitMs }) => `max wait ${time(maxWaitMs)}`,
  },
]

const RESULTS: readonly Column<QueueReport>[] = [
  { title: 'WAIT P50', cell: ({ waitMs }) => time(waitMs?.p50) },
  { title: 'P95', cell: ({ waitMs }) => time(waitMs?.p95) },
  { title: 'ANSWER', cell: ({ answerMs }) => time(answerMs?.p95) },
  { title: 'FULL', cell: (report) => refused(report, report.queueFull) },
  { title: 'LATE', cell: (report) => refused(report, report.overloaded) },
  { title: 'LARGE', cell: (report) => refused(report, report.tooLarge) },
  { title: 'SLOTS', cell: ({ concurrencyUse }) => shortPercent(concurrencyUse) },
  { title: 'BUDGET', cell: ({ budgetUse }) => shortPercent(budgetUse) },
  { title: 'TOKENS/S', cell: ({ outputTokensPerSecond }) => count(outputTokensPerSecond) },
]

const LEGEND = `ANSWER is the 95th percentile. FULL, LATE and LARGE are refused: queue_full,
model_overloaded, too large for the budget. SLOTS and BUDGET are in use.`

/** A table that compares several runs, one per line. Limits that all runs have in common are listed above it. */
export function comparison(reports: readonly QueueReport[], view: View): string {
  const isSame = ({ cell }: Column<QueueReport>): boolean => new Set(reports.map(cell)).size === 1
  const same = LIMITS.filter(isSame).map(({ words }) => words((reports[0] as QueueReport).limits))
  const columns = [...LIMITS.filter((column) => !isSame(column)), ...RESULTS]
  return [
    ...(same.length === 0 ? [] : [`The same for all: ${same.join(', ')}`, '']),
    renderTable(
      reports,
      columns.map((column) => ({ ...column, align: 'right' })),
      view,
    ),
    '',
    LEGEND,
  ].join('\n')
}

/** The load without and with batch work, and how much of that fitted. */
export function batchComparison(
  [without, run]: readonly [QueueReport, QueueReport],
  load: BatchLoad,
  view: View,
): string {
  const refusals = ({ queueFull, overloaded, tooLarge }: QueueReport): number => queueFull + overloaded + tooLarge
  const rows: readonly (readonly [title: string, figure: (report: QueueReport) => string])[] = [
    ['online wait, p50', ({ waitMs }) => time(waitMs?.p50)],
    ['online wait, p95', ({ waitMs }) => time(waitMs?.p95)],
    ['online answer, p95', ({ answerMs }) => time(answerMs?.p95)],
    ['online refused', (report) => shortPercent(ofAll(report, refusals(report)))],
    ['places in use', ({ concurrencyUse }) => shortPercent(concurrencyUse)],
    ['token budget in use', ({ budgetUse }) => shortPercent(budgetUse)],
    ['output tokens/s', ({ outputTokensPerSecond }) => count(outputTokensPerSecond)],
  ]
  const table = renderTable(
    rows,
    [
      { title: '', cell: ([title]) => title },
      { title: 'WITHOUT', cell: ([, figure]) => figure(without), align: 'right' },
      { title: 'WITH BATCH', cell: ([, figure]) => figure(run), align: 'right' },
    ],
    view,
  )
  return [table, '', batchLines(run, load)].join('\n')
}

function batchLines({ batch }: QueueReport, { lines }: BatchLoad): string {
  if (batch === null || batch.lines === 0) return 'No line fits: no place is idle, or a line needs too many tokens.'
  const fitting =
    lines === Infinity
      ? `${count(batch.lines)} lines fit, ${count(batch.linesPerDay)} a day`
      : `${count(batch.lines)} of ${count(lines)} lines fit`
  return `${fitting}. ${count(batch.preempted)} were aborted for online requests, and run again.`
}

/** Null when nothing was refused, so that the table drops a column that is empty in every run. */
function refused(report: QueueReport, requests: number): string | null {
  return requests === 0 ? null : shortPercent(ofAll(report, requests))
}

function shortPercent(share: number): string {
  return `${(share * 100).toFixed(1)}%`
}

/** The same figures as JSON. Times are in milliseconds; `*_use` and `held_by_*` are fractions of 1. */
export function runView(report: QueueReport): object {
  const { limits } = report
  return {
    limits: {
      token_budget: limits.tokenBudget,
      max_concurrent_requests: limits.maxConcurrentRequests,
      max_queue_depth: limits.maxQueueDepth,
      max_wait_ms: limits.maxWaitMs,
    },
    requests: report.requests,
    admitted_at_once: report.admittedAtOnce,
    admitted_after_wait: report.admittedAfterWait,
    queue_full: report.queueFull,
    model_overloaded: report.overloaded,
    too_large: report.tooLarge,
    wait_ms: report.waitMs,
    answer_ms: report.answerMs,
    concurrency_use: report.concurrencyUse,
    budget_use: report.budgetUse,
    held_by_concurrency: report.heldByConcurrency,
    held_by_budget: report.heldByBudget,
    queue_depth_max: report.queueDepthMax,
    output_tokens_per_second: report.outputTokensPerSecond,
    batch: report.batch && {
      lines: report.batch.lines,
      lines_per_day: report.batch.linesPerDay,
      preempted: report.batch.preempted,
    },
    moments: report.moments.map((moment) => ({
      in_flight_requests: moment.inFlightRequests,
      committed_tokens: moment.committedTokens,
      queue_depth: moment.queueDepth,
    })),
  }
}

function percentiles(spread: Spread | null): string {
  if (spread === null) return 'no request was admitted'
  const { p50, p90, p95, p99, max } = spread
  return `p50 ${time(p50)}, p90 ${time(p90)}, p95 ${time(p95)}, p99 ${time(p99)}, max ${time(max)}`
}

/** One character per value, blank at 0 and full at `whole`. */
function sparkline(values: readonly number[], whole: number): string {
  const bars = '▁▂▃▄▅▆▇█'
  const bar = (value: number): string => bars[Math.min(7, Math.floor((value / whole) * 8))] ?? ' '
  return values.map((value) => (value > 0 ? bar(value) : ' ')).join('')
}

function ofAll(report: QueueReport, requests: number): number {
  return report.requests === 0 ? 0 : requests / report.requests
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

function count(value: number): string {
  return value.toLocaleString('en-AU', { maximumFractionDigits: value < 10 ? 1 : 0 })
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`
}

function time(ms: number | undefined): string {
  if (ms === undefined) return '–'
  if (ms < 1000) return `${Math.round(ms)} ms`
  return ms < 600_000 ? `${(ms / 1000).toFixed(1)} s` : `${(ms / 60_000).toFixed(1)} min`
}
