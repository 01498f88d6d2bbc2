import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { describe, it } from 'node:test'
import { serviceFindings } from '../../src/operate/doctor/doctor-service.ts'

const healthy = {
  weir_ledger_healthy: 1,
  weir_ledger_lag_seconds: 0.1,
  weir_journal_bytes: 10,
  weir_journal_max_bytes: 100,
  weir_journal_lag_seconds: 0,
  'weir_queue_depth{lane="m"}': 8,
  'weir_lane_max_queue_depth{lane="m"}': 10,
  'weir_queue_depth{lane="other"}': 1,
  'weir_lane_max_queue_depth{lane="other"}': 10,
  weir_ledger_refused_rows: 0,
}

function found(changes: object = {}): readonly (readonly [string, string])[] {
  const samples = Object.entries({ ...healthy, ...changes }).map(([name, value]) => `${name} ${value}\n`)
  return serviceFindings(`# HELP a b\n${samples.join('')}`).map(({ name, state, detail, advice = '' }) => {
    assert.equal(state, 'problem')
    const page = advice.replace('see ', '../../')
    assert.ok(existsSync(new URL(page, import.meta.url)), page)
    return [name, detail]
  })
}

describe('the problems of a running service', () => {
  it('are none while everything is within its limits, or nothing is known', () => {
    assert.deepEqual(found(), [])
    assert.deepEqual(serviceFindings(''), [])
  })

  it('are named with their runbooks, in the order of the alerts', () => {
    const all = found({
      weir_reconcile_problems: 2,
      weir_ledger_refused_rows: 1,
      'weir_queue_depth{lane="m"}': 9,
      weir_journal_bytes: 51,
      weir_ledger_lag_seconds: 5.6,
    })
    assert.deepEqual(all, [
      ['ledger', 'the oldest row has waited 6 s to be recorded'],
      ['journal', 'it is 51 % full, and its oldest row has waited 0 s for the database'],
      ['queue', 'm: 9 of 10 places are taken'],
      ['reconciliation', 'the database refused 1 rows, and the last reconciliation found 2 mismatches'],
    ])
  })

  it('include a ledger that is not healthy, an old journal, and one cause of a failed reconciliation', () => {
    assert.deepEqual(found({ weir_ledger_healthy: 0 }), [['ledger', 'usage cannot be recorded']])
    assert.deepEqual(
      found({ weir_journal_lag_seconds: 301 }).map(([name]) => name),
      ['journal'],
    )
    assert.deepEqual(
      found({ weir_reconcile_problems: 1 }).map(([name]) => name),
      ['reconciliation'],
    )
  })
})
