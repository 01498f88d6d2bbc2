import type { CheckResult } from './check-result.ts'

/** What the metrics of a running service show, in the order of the alerts in deploy/prometheus/rules.yaml. */
export function serviceFindings(metrics: string): readonly CheckResult[] {
  const samples = samplesIn(metrics)
  const value = (name: string): number => Math.max(0, ...samples.filter((it) => it.name === name).map((it) => it.value))
  const findings: CheckResult[] = []
  const problem = (name: string, detail: string, alert: string): void =>
    void findings.push({ name, state: 'problem', detail, advice: `see docs/runbooks/${alert}.md` })

  const isUnhealthy = samples.some((it) => it.name === 'weir_ledger_healthy' && it.value === 0)
  const lag = value('weir_ledger_lag_seconds')
  if (isUnhealthy || lag > 5) {
    const detail = isUnhealthy
      ? 'usage cannot be recorded'
      : `the oldest row has waited ${Math.round(lag)} s to be recorded`
    problem('ledger', detail, 'WeirLedgerLags')
  }
  const journal = value('weir_journal_bytes') / value('weir_journal_max_bytes')
  const journalLag = value('weir_journal_lag_seconds')
  if (journal > 0.5 || journalLag > 300) {
    const detail = `it is ${Math.round(journal * 100)} % full, and its oldest row has waited ${Math.round(journalLag)} s for the database`
    problem('journal', detail, 'WeirJournalGrows')
  }
  for (const { lane, value: limit } of samples.filter((it) => it.name === 'weir_lane_max_queue_depth')) {
    const depth = samples.find((it) => it.name === 'weir_queue_depth' && it.lane === lane)?.value ?? 0
    if (depth > 0.8 * limit) problem('queue', `${lane}: ${depth} of ${limit} places are taken`, 'WeirQueueSaturated')
  }
  const refused = value('weir_ledger_refused_rows')
  const mismatches = value('weir_reconcile_problems')
  if (refused > 0 || mismatches > 0) {
    const detail = `the database refused ${refused} rows, and the last reconciliation found ${mismatches} mismatches`
    problem('reconciliation', detail, 'WeirReconcileFails')
  }
  return findings
}

interface Sample {
  readonly name: string
  readonly lane: string | undefined
  readonly value: number
}

/** The lines `name{labels} value`. */
function samplesIn(metrics: string): readonly Sample[] {
  return metrics.split('\n').flatMap((line) => {
    if (line === '' || line.startsWith('#')) return []
    const [name = ''] = line.split(/[{ ]/, 1)
    const lane = line.split('lane="')[1]?.split('"')[0]
    return [{ name, lane, value: Number(line.slice(line.lastIndexOf(' '))) }]
  })
}
