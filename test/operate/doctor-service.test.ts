import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { parse } from 'yaml'
import { alertOf, inOrderOfAlerts, serviceFindings } from '../../src/operate/doctor/doctor-service.ts'
import type { MetricName } from '../../src/operate/telemetry/metric-table.ts'
import type { MetricFamily, MetricSample } from '../../src/operate/telemetry/metrics.ts'

const GIBIBYTE = 2 ** 30

const healthy: Partial<Record<MetricName, Readonly<Record<string, MetricSample['value']>>>> = {
  weir_data_disk_free_bytes: { '': 10 * GIBIBYTE },
  weir_data_disk_bytes: { '': 100 * GIBIBYTE },
  weir_ledger_healthy: { '': 1 },
  weir_ledger_lag_seconds: { '': 0.1 },
  weir_journal_bytes: { '': 10 },
  weir_journal_max_bytes: { '': 100 },
  weir_journal_lag_seconds: { '': 0 },
  weir_queue_depth: { '{lane="m"}': 8, '{lane="other"}': 1 },
  weir_lane_max_queue_depth: { '{lane="m"}': 10, '{lane="other"}': 10 },
  weir_requests_total: { '{status="200"}': 995, '{status="502"}': 5 },
  weir_first_token_seconds: { '{model="m"}': { buckets: [1, 5, 10], counts: [90, 5, 4, 1], sum: 0, exemplars: {} } },
  weir_alert_oldest_undelivered_seconds: { '': 600 },
  weir_ledger_refused_rows: { '': 0 },
}

const familiesWith = (changes: typeof healthy): readonly MetricFamily[] =>
  Object.entries({ ...healthy, ...changes }).map(([name, samples]) => ({
    name: name as MetricName,
    samples: Object.entries(samples).map(([label, value]) => ({ label, value })),
  }))

function found(changes: typeof healthy = {}): readonly (readonly [string, string])[] {
  return serviceFindings(familiesWith(changes)).map(({ name, state, detail, advice = '' }) => {
    assert.equal(state, ['requests', 'first tokens'].includes(name) ? 'note' : 'problem')
    const page = advice.replace('see ', '../../')
    assert.ok(existsSync(new URL(page, import.meta.url)), page)
    return [name, detail]
  })
}

describe('the problems of a running service', () => {
  it('are none while everything is within its limits, or nothing is known', () => {
    assert.deepEqual(found(), [])
    assert.deepEqual(serviceFindings([]), [])
    const limits = {
      weir_data_disk_free_bytes: { '': GIBIBYTE },
      weir_data_disk_bytes: { '': 2 * GIBIBYTE },
      weir_ledger_lag_seconds: { '': 5 },
      weir_journal_bytes: { '': 50 },
      weir_journal_lag_seconds: { '': 300 },
    }
    assert.deepEqual(found(limits), [])
  })

  it('are named with their runbooks, in the order of the alerts', () => {
    const all = found({
      weir_reconcile_problems: { '': 2 },
      weir_ledger_refused_rows: { '': 1 },
      weir_alert_oldest_undelivered_seconds: { '': 660 },
      weir_first_token_seconds: { '': { buckets: [1, 5, 10], counts: [90, 4, 5, 1], sum: 0, exemplars: {} } },
      weir_requests_total: { '{status="200"}': 990, '{status="404"}': 4, '{status="502"}': 5, '{status="503"}': 1 },
      weir_queue_depth: { '{lane="m"}': 9 },
      weir_journal_bytes: { '': 51 },
      weir_ledger_lag_seconds: { '': 5.6 },
      weir_data_disk_free_bytes: { '': 9.9 * GIBIBYTE },
    })
    assert.deepEqual(all, [
      ['disk', '9 % of the disk of the data is free'],
      ['ledger', 'the oldest row has waited 6 s to be recorded'],
      ['journal', 'it is 51 % full, and its oldest row has waited 0 s for the database'],
      ['queue', 'm: 9 of 10 places are taken'],
      ['requests', 'since the start, 0.6 % of 1000 have failed'],
      ['first tokens', 'since the start, 6.0 % of 100 came more than 5 s after admission'],
      ['alerts', 'an event has waited 11 min to be delivered'],
      ['reconciliation', 'the database refused 1 rows, and the last reconciliation found 2 mismatches'],
    ])
  })

  it('include a small disk, a ledger that is not healthy, an old journal, and one cause of a failed reconciliation', () => {
    const names = (changes: typeof healthy): readonly string[] => found(changes).map(([name]) => name)
    const small = { weir_data_disk_free_bytes: { '': GIBIBYTE - 1 }, weir_data_disk_bytes: { '': 2 * GIBIBYTE } }
    assert.deepEqual(names(small), ['disk'])
    assert.deepEqual(found({ weir_ledger_healthy: { '': 0 } }), [['ledger', 'usage cannot be recorded']])
    assert.deepEqual(names({ weir_journal_lag_seconds: { '': 301 } }), ['journal'])
    assert.deepEqual(names({ weir_reconcile_problems: { '': 1 } }), ['reconciliation'])
  })

  it('are those of all workers, a lane once', () => {
    const workers = [
      ...familiesWith({ weir_queue_depth: { '{lane="m"}': 9 } }),
      ...familiesWith({ weir_queue_depth: { '{lane="m"}': 9 }, weir_ledger_healthy: { '': 0 } }),
    ]
    assert.deepEqual(
      serviceFindings(workers).map(({ name }) => name),
      ['ledger', 'queue'],
    )
  })
})

describe('the order of checks', () => {
  it('is that of the alerts for Prometheus, and every alert has a check', () => {
    const rules = readFileSync(new URL('../../deploy/prometheus/rules.yaml', import.meta.url), 'utf8')
    const { groups } = parse(rules) as { groups: readonly { rules: readonly { alert?: string }[] }[] }
    const alerts = groups.flatMap((group) => group.rules.flatMap(({ alert }) => alert ?? []))
    assert.deepEqual([...new Set<string>(Object.values(alertOf))], [...new Set(alerts)])
  })

  it('keeps the order of findings of one check, and has those without an alert last', () => {
    const names = ['token counts', 'queue', 'engine', 'service', 'engine']
    const findings = names.map((name, index) => ({ name, state: 'ok' as const, detail: String(index) }))
    assert.deepEqual(
      inOrderOfAlerts(findings).map(({ detail }) => detail),
      ['3', '2', '4', '1', '0'],
    )
  })
})
