import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Workspace } from '../../src/workspaces/workspace.ts'
import {
  coordinationEvents,
  fetchEvents,
  onDemandEvents,
  ledgerEvents,
  refusalsFailed,
  spendEvents,
  storeEvents,
  upstreamEvents,
} from '../../src/service-log.ts'
import { metricsText } from '../../src/operate/telemetry/metrics-text.ts'
import { createTelemetry } from '../../src/operate/telemetry/telemetry.ts'

function stage() {
  const written: string[] = []
  const telemetry = createTelemetry('info', '1', { write: (line) => void written.push(line), flush: async () => {} })
  /** The level and the fields of the lines since the last call; what they say is for people. */
  const logged = () =>
    written.splice(0).map((line) => {
      const { level, time: _time, msg: _msg, ...fields } = JSON.parse(line) as Record<string, unknown>
      return [level, fields]
    })
  return { telemetry, logged }
}

describe('what is logged', () => {
  it('when a replica is asked to drain is one line, however often it is asked', () => {
    const { telemetry, logged } = stage()
    let begun = 0
    const draining = { isOn: () => begun > 0, begin: () => void begun++ }
    const events = coordinationEvents(telemetry, draining as never)
    events.drainRequested()
    assert.deepEqual([logged(), begun], [[[30, {}]], 1])
    events.drainRequested()
    assert.deepEqual(logged(), [])
    events.joined('7', 3)
    events.lost('cut')
    events.unreached('keys', ['two'])
    assert.deepEqual(logged(), [
      [30, { epoch: '7', replicas: 3 }],
      [40, { reason: 'cut' }],
      [40, { change: 'keys', replicas: ['two'] }],
    ])
  })

  it('of the database is its loss and its return; a permanent loss ends the service', () => {
    const { telemetry, logged } = stage()
    const lost: Error[] = []
    const events = storeEvents(telemetry, (reason) => void lost.push(reason))
    events.ended(new Error('gone'))
    events.replaced()
    events.lost(new Error('for good'))
    assert.deepEqual(logged(), [
      [50, { reason: 'gone' }],
      [40, {}],
    ])
    assert.deepEqual(lost, [new Error('for good')])
    refusalsFailed(telemetry)(new Error('full'))
    assert.deepEqual(logged(), [[40, { reason: 'full' }]])
  })

  it('of the ledger counts rows that are set aside, and a segment or database that is missing ends the service', async () => {
    const { telemetry, logged } = stage()
    const lost: Error[] = []
    const events = ledgerEvents(telemetry, (reason) => void lost.push(reason))
    events.interrupted(2)
    events.damaged(['1'] as never)
    events.refusedRowsAdded(3)
    events.stillRefused(4)
    events.setAside({ requestId: 'r', workspaceId: 'ws' }, 'too large')
    events.storeFailed(new Error('busy'))
    events.storeRecovered()
    assert.deepEqual(logged(), [
      [40, { requests: 2 }],
      [50, { segments: ['1'] }],
      [40, { rows: 3 }],
      [50, { rows: 4 }],
      [50, { request_id: 'r', workspace_id: 'ws', reason: 'too large' }],
      [50, { reason: 'busy' }],
      [40, {}],
    ])
    assert.match(metricsText(await telemetry.metrics(), 'prometheus'), /^weir_ledger_refused_rows 5$/m)
    for (const code of ['ENOENT', 'ERR_DATA_DIR_REPLACED', 'EIO']) {
      events.storeFailed(Object.assign(new Error(code), { code }))
    }
    assert.deepEqual(
      lost.map(({ message }) => message),
      ['ENOENT', 'ERR_DATA_DIR_REPLACED'],
    )
    assert.deepEqual(logged(), [[50, { reason: 'EIO' }]])
  })

  it('of an engine is each failed call, which is also counted', () => {
    const { telemetry, logged } = stage()
    const failures: string[] = []
    const events = upstreamEvents(telemetry, {
      add: (url: string, reason: string) => failures.push(url, reason),
    } as never)
    events.callFailed('http://a', 'reset')
    assert.deepEqual([logged(), failures], [[[40, { url: 'http://a', reason: 'reset' }]], ['http://a', 'reset']])
  })

  it('of an engine that Weir starts has how much it took, if that is more than is kept for it', () => {
    const { telemetry, logged } = stage()
    const memory = { bytes: 10e9, source: 'configured', measuredBytes: 12e9 } as const
    onDemandEvents(telemetry).tookTooMuch('a/b', memory)
    assert.deepEqual(logged(), [[40, { lane: 'a/b', kept: '10.0 GB', measured: '12.0 GB' }]])
  })

  it('of a download is its end, and other parts are notified of every step', () => {
    const { telemetry, logged } = stage()
    const seen: unknown[] = []
    const events = fetchEvents(telemetry, [
      {
        progress: () => seen.push('progress'),
        ready: (slug) => seen.push(slug),
        failed: (...all) => seen.push(...all),
      },
      {},
    ])
    events.progress({} as never)
    events.ready('a/b')
    events.failed('a/c', 'no room')
    assert.deepEqual(seen, ['progress', 'a/b', 'a/c', 'no room'])
    assert.deepEqual(logged(), [
      [30, { model: 'a/b' }],
      [40, { model: 'a/c', reason: 'no room' }],
    ])
  })

  it('of a spend limit is the limit and what is spent', async () => {
    const { telemetry, logged } = stage()
    const spendLimit = { amount: 5_000_000_000_000n, isSoft: true }
    spendEvents(telemetry).limitReached({ name: 'acme', spendLimit } as Workspace, 6_000_000_000_000n)
    assert.deepEqual(logged(), [[40, { workspace: 'acme', limit: '5.00', spent: '6.00', soft: true }]])
    assert.match(
      metricsText(await telemetry.metrics(), 'prometheus'),
      /weir_spend_limits_reached_total\{workspace="acme"\} 1/,
    )
  })
})
