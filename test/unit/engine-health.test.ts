import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { Dispatcher } from 'undici'
import type { EngineAddress } from '../../src/engines/address.ts'
import { watchHealth } from '../../src/engines/health.ts'
import { turn } from './hand-clock.ts'

interface Probe {
  readonly path: string
  readonly headers: Record<string, string>
}

/** An address whose probes are answered with the status that is set; 0 means that nothing answers. */
function stage(t: TestContext, headers: Record<string, string> = {}) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const engine = { status: 200 }
  const probes: Probe[] = []
  const changes: boolean[] = []
  const pool = {
    async request(probe: Probe) {
      probes.push(probe)
      if (engine.status === 0) throw new Error('nothing listens')
      return { statusCode: engine.status, body: { dump: async () => {} } }
    },
  }
  const address: EngineAddress = {
    url: 'http://engine/v1',
    prefix: '/v1',
    pool: pool as unknown as Dispatcher,
    inFlight: 0,
    healthy: true,
  }
  const stop = watchHealth(address, headers, (healthy) => changes.push(healthy))
  t.after(stop)
  /** The next probe, however long it is until then. */
  async function next(status: number): Promise<boolean> {
    engine.status = status
    const before = probes.length
    for (let waitedMs = 0; probes.length === before && waitedMs < 60_000; waitedMs += 1000) {
      t.mock.timers.tick(1000)
      await turn()
    }
    return address.healthy
  }
  return { probes, changes, next, stop }
}

describe('the probes of an engine', () => {
  it('take any answer below 500 as a sign of life, and no other', async (t) => {
    const { next } = stage(t)
    await turn()
    for (const status of [200, 401, 404, 499]) {
      assert.equal(await next(status), true)
      assert.equal(await next(status), true, `status ${status}`)
    }
    for (const status of [500, 503, 0]) {
      await next(status)
      assert.equal(await next(status), false, `status ${status}`)
      assert.equal(await next(200), true)
    }
  })

  it('need two failures in a row to take it down, and one success to bring it back', async (t) => {
    const { next, changes } = stage(t)
    await turn()
    assert.deepEqual([await next(500), await next(200), await next(500)], [true, true, true])
    assert.deepEqual([await next(500), await next(500), await next(200)], [false, false, true])
    assert.deepEqual(changes, [false, true], 'each change is reported once')
  })

  it('carry the key, so that an engine that wants one does not refuse them', async (t) => {
    const { probes } = stage(t, { authorization: 'Bearer secret' })
    await turn()
    assert.equal(probes[0]?.path, '/v1/models')
    assert.equal(probes[0]?.headers['authorization'], 'Bearer secret')
  })

  it('end when the engine is closed', async (t) => {
    const { probes, next, stop } = stage(t)
    await turn()
    stop()
    await next(500)
    assert.equal(probes.length, 1)
  })
})
