import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { healthRoutes, type Readiness } from '../../src/operate/routes/health.ts'
import { operatorHealthRoute } from '../../src/operate/routes/operator-health.ts'
import { looseExchange } from '../support/exchange-listener.ts'

const ready: Readiness = {
  isReady: true,
  engines: { up: 3, down: 2 },
  coordination: 'alone',
  isDatabaseUp: true,
  isDraining: false,
}

async function ask(path: string, changes: Partial<Readiness> = {}): Promise<object> {
  const route = healthRoutes(() => ({ ...ready, ...changes })).find((it) => it.path === path)
  let body = ''
  await route?.answer(looseExchange('GET', { end: (text) => void (body += String(text)) }), {})
  return JSON.parse(body) as object
}

describe('health checks', () => {
  it('report alive whatever is wrong', async () => {
    assert.deepEqual(await ask('/healthz', { isReady: false, isDraining: true, coordination: 'stopped' }), {
      status: 'alive',
    })
  })

  it('report ready, with the engines and the service’s dependencies', async () => {
    const said = { status: 'ready', engines: { up: 3, down: 2 }, coordination: 'alone', database: 'up' }
    assert.deepEqual(await ask('/readyz'), said)
    assert.deepEqual(await ask('/readyz', { isDatabaseUp: false }), { ...said, database: 'away' })
    for (const coordination of ['joined', 'apart'] as const) {
      assert.deepEqual(await ask('/readyz', { coordination }), { ...said, coordination })
    }
  })

  it('refuse while it drains, without Redis, and while nothing can be recorded', async () => {
    for (const [changes, message] of [
      [{ isDraining: true }, /draining/],
      [{ coordination: 'stopped' }, /Redis does not answer/],
      [{ isReady: false }, /^The service is not ready\.$/],
    ] as const) {
      await assert.rejects(ask('/readyz', changes), { code: 'service_unavailable', retryAfter: 2, message })
    }
  })
})

describe('health in detail', () => {
  async function askInDetail(changes: Partial<Readiness> = {}): Promise<object> {
    const route = operatorHealthRoute({
      readiness: () => ({ ...ready, ...changes }),
      diskSpace: async () => ({ size: 5000, free: 700 }),
    })
    let body = ''
    const exchange = looseExchange('GET', { end: (text) => void (body += String(text)) })
    await route.answer(exchange, {}, async () => assert.fail('it changes nothing'))
    return JSON.parse(body) as object
  }

  it('has the disk and every dependency, also while the replica is not ready', async () => {
    const healthy = {
      object: 'health',
      is_ready: true,
      is_draining: false,
      engines: { up: 3, down: 2 },
      database: 'up',
      coordination: 'alone',
      disk: { size_bytes: 5000, free_bytes: 700 },
    }
    assert.deepEqual(await askInDetail(), healthy)
    assert.deepEqual(
      await askInDetail({ isReady: false, isDraining: true, isDatabaseUp: false, coordination: 'stopped' }),
      { ...healthy, is_ready: false, is_draining: true, database: 'away', coordination: 'stopped' },
    )
  })
})
