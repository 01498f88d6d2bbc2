import type { MetricName } from '../telemetry/metric-table.ts'
import type { MetricFamily, MetricSample } from '../telemetry/metrics.ts'
import type { CheckResult } from './check-result.ts'

/**
 * The alert for what each check finds, in the order of deploy/prometheus/rules.yaml: the first one often causes the
 * others. An alert has a page in docs/runbooks.
 */
export const alertOf = {
  service: 'WeirDown',
  'data directory': 'WeirDiskFills',
  disk: 'WeirDiskFills',
  ledger: 'WeirLedgerLags',
  database: 'WeirJournalGrows',
  journal: 'WeirJournalGrows',
  engine: 'WeirEngineDown',
  queue: 'WeirQueueSaturated',
  requests: 'WeirRequestsFail',
  'first tokens': 'WeirFirstTokensSlow',
  alerts: 'WeirAlertsUndelivered',
  reconciliation: 'WeirReconcileFails',
  certificate: 'WeirCertificateEnds',
} as const

type CheckName = keyof typeof alertOf

export const runbookOf = (check: CheckName): string => `docs/runbooks/${alertOf[check]}.md`

/** What has no alert is last. */
export function inOrderOfAlerts(findings: readonly CheckResult[]): readonly CheckResult[] {
  const checks = Object.keys(alertOf)
  const known = checks.flatMap((check) => findings.filter(({ name }) => name === check))
  return [...known, ...findings.filter(({ name }) => !checks.includes(name))]
}

const GIBIBYTE = 2 ** 30

/** What the metrics of a running service, of all its workers, show. The limits are those of the alerts. */
export function serviceFindings(families: readonly MetricFamily[]): readonly CheckResult[] {
  const samples = (name: MetricName): readonly MetricSample[] =>
    families.filter((it) => it.name === name).flatMap((it) => it.samples)
  const values = (name: MetricName): readonly number[] => samples(name).map(valueOf)
  const most = (name: MetricName): number => Math.max(0, ...values(name))
  const findings: CheckResult[] = []
  const found = (name: CheckName, detail: string, state: 'problem' | 'note' = 'problem'): void =>
    void findings.push({ name, state, detail, advice: `see ${runbookOf(name)}` })

  const [free = Infinity] = values('weir_data_disk_free_bytes')
  const share = free / most('weir_data_disk_bytes')
  if (free < GIBIBYTE || share < 0.1) found('disk', `${Math.floor(share * 100)} % of the disk of the data is free`)
  const isUnhealthy = values('weir_ledger_healthy').includes(0)
  const lag = most('weir_ledger_lag_seconds')
  if (isUnhealthy) found('ledger', 'usage cannot be recorded')
  else if (lag > 5) found('ledger', `the oldest row has waited ${Math.round(lag)} s to be recorded`)
  const journal = most('weir_journal_bytes') / most('weir_journal_max_bytes')
  const journalLag = most('weir_journal_lag_seconds')
  if (journal > 0.5 || journalLag > 300) {
    const waited = `its oldest row has waited ${Math.round(journalLag)} s for the database`
    found('journal', `it is ${Math.round(journal * 100)} % full, and ${waited}`)
  }
  const depths = byLane(samples('weir_queue_depth'))
  for (const [lane, limit] of byLane(samples('weir_lane_max_queue_depth'))) {
    const depth = depths.get(lane) ?? 0
    if (depth > 0.8 * limit) found('queue', `${lane}: ${depth} of ${limit} places are taken`)
  }
  const requests = sum(values('weir_requests_total'))
  const failed = sum(samples('weir_requests_total').filter(isFailure).map(valueOf))
  // The counters do not show when, so it may be over.
  if (failed > 0.005 * requests) {
    found('requests', `since the start, ${percent(failed / requests)} of ${requests} have failed`, 'note')
  }
  const { answers, slow } = firstTokens(samples('weir_first_token_seconds'))
  if (slow > 0.05 * answers) {
    const detail = `since the start, ${percent(slow / answers)} of ${answers} came more than 5 s after admission`
    found('first tokens', detail, 'note')
  }
  const undelivered = most('weir_alert_oldest_undelivered_seconds')
  if (undelivered > 600) found('alerts', `an event has waited ${Math.round(undelivered / 60)} min to be delivered`)
  const refused = most('weir_ledger_refused_rows')
  const mismatches = most('weir_reconcile_problems')
  if (refused > 0 || mismatches > 0) {
    const detail = `the database refused ${refused} rows, and the last reconciliation found ${mismatches} mismatches`
    found('reconciliation', detail)
  }
  return findings
}

const valueOf = ({ value }: MetricSample): number => Number(value)

const isFailure = ({ label }: MetricSample): boolean => label.startsWith('{status="5')

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`

/** Every worker reports the lanes of the whole service. */
function byLane(samples: readonly MetricSample[]): ReadonlyMap<string, number> {
  return new Map(samples.map(({ label, value }) => [label.slice('{lane="'.length, -'"}'.length), Number(value)]))
}

/** How many answers began, and how many of them more than 5 seconds after admission. */
function firstTokens(samples: readonly MetricSample[]): { readonly answers: number; readonly slow: number } {
  const counts = samples.flatMap(({ value }) => {
    if (typeof value === 'number') return []
    return value.counts.map((count, index) => ({ count, isSlow: (value.buckets[index] ?? Infinity) > 5 }))
  })
  return {
    answers: sum(counts.map(({ count }) => count)),
    slow: sum(counts.flatMap(({ count, isSlow }) => (isSlow ? count : []))),
  }
}
