import type { LaneLimits } from '../core/admission.ts'
import type { Moment, QueueReport } from '../core/queue-simulation.ts'

/** One run in words and a small chart. */
export function singleRun(report: QueueReport, durationMs: number): string {
  const { limits, waitMs, requests } = report
  const chart = (label: string, key: keyof Moment, whole: number): string => {
    const values = report.moments.map((moment) => moment[key])
    return `  ${label.padEnd(17)} ${sparkline(values, whole)}  mean ${count(mean(values))}, peak ${count(Math.max(...values))} of ${count(whole)}`
  }
  const of = (part: number): string => `${count(part).padStart(9)}  ${percent(requests === 0 ? 0 : part / requests)}`
  return [
    `limits   ${describe(limits)}`,
    '',
    `requests          ${count(requests).padStart(9)}`,
    `  admitted at once${of(report.admittedAtOnce)}`,
    `  after a wait    ${of(report.admittedAfterWait)}`,
    `  queue_full      ${of(report.queueFull)}`,
    `  model_overloaded${of(report.overloaded)}`,
    `  too large       ${of(report.tooLarge)}`,
    '',
    waitMs === null
      ? 'nobody was admitted'
      : `wait     p50 ${time(waitMs.p50)}   p90 ${time(waitMs.p90)}   p95 ${time(waitMs.p95)}   p99 ${time(waitMs.p99)}   max ${time(waitMs.max)}`,
    `in use   concurrency ${percent(report.concurrencyUse).trim()}   token budget ${percent(report.budgetUse).trim()}`,
    `queue    held by concurrency ${percent(report.heldByConcurrency).trim()} of the time, by the token budget ${percent(report.heldByBudget).trim()}`,
    `output   ${count(report.outputTokensPerSecond)} tokens a second`,
    '',
    `over ${time(durationMs)}`,
    chart('in flight', 'inFlightRequests', limits.maxConcurrentRequests),
    chart('committed tokens', 'committedTokens', limits.tokenBudget),
    chart('queue', 'queueDepth', limits.maxQueueDepth),
  ].join('\n')
}

/** Several runs, a line each. */
export function comparison(reports: readonly QueueReport[]): string {
  const rows = [
    [
      'budget',
      'concurrent',
      'depth',
      'max wait',
      'p50',
      'p95',
      'p99',
      'full',
      'overloaded',
      'large',
      'conc. use',
      'budget use',
      'tokens/s',
    ],
    ...reports.map((report) => [
      count(report.limits.tokenBudget),
      count(report.limits.maxConcurrentRequests),
      count(report.limits.maxQueueDepth),
      time(report.limits.maxWaitMs),
      ...(report.waitMs === null
        ? ['–', '–', '–']
        : [time(report.waitMs.p50), time(report.waitMs.p95), time(report.waitMs.p99)]),
      ...[report.queueFull, report.overloaded, report.tooLarge].map((part) => percent(part / (report.requests || 1))),
      percent(report.concurrencyUse),
      percent(report.budgetUse),
      count(report.outputTokensPerSecond),
    ]),
  ]
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)))
  return rows.map((row) => row.map((cell, column) => cell.padStart(widths[column]!)).join('  ')).join('\n')
}

function describe(limits: LaneLimits): string {
  const { tokenBudget, maxConcurrentRequests, maxQueueDepth, maxWaitMs } = limits
  return `token budget ${count(tokenBudget)}, ${count(maxConcurrentRequests)} concurrent, queue ${count(maxQueueDepth)}, max wait ${time(maxWaitMs)}`
}

/** One character for each value, empty at 0, full at `whole`. */
function sparkline(values: readonly number[], whole: number): string {
  const bars = ' ▁▂▃▄▅▆▇█'
  return values
    .map((value) => bars[value <= 0 ? 0 : Math.max(1, Math.min(8, Math.round((value / whole) * 8)))])
    .join('')
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

function count(value: number): string {
  return value.toLocaleString('en-AU', { maximumFractionDigits: value < 10 ? 1 : 0 })
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`.padStart(7)
}

function time(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  return ms < 120_000 ? `${(ms / 1000).toFixed(1)} s` : `${(ms / 60_000).toFixed(1)} min`
}
