import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { healthRoutes, type Readiness } from '../../src/operate/routes/health.ts'
import { operatorHealthRoute } from '../../src/operate/routes/operator-health.ts'
import { ask } from '../support/route-answer.ts'

const ready: Readiness = {
  isReady: true,
  engines: { up: 3, down: 2 },
  coordination: 'alone',
  isDatabaseUp: true,
  isDraining: false,
}

async function health(path: string, changes: Partial<Readiness> = {}): Promise<unknown> {
  return (
    await ask(
      healthRoutes(() => ({ ...ready, ...changes })),
      `GET ${path}`,
    )
  ).body
}

describe('health checks', () => {
  it('report alive whatever is wrong', async () => {
    assert.deepEqual(await health('/healthz', { isReady: false, isDraining: true, coordination: 'stopped' }), {
      status: 'alive',
    })
  })

  it('report ready, with the engines and the service’s dependencies', async () => {
    const said = { status: 'ready', engines: { up: 3, down: 2 }, coordination: 'alone', database: 'up' }
    assert.deepEqual(await health('/readyz'), said)
    assert.deepEqual(await health('/readyz', { isDatabaseUp: false }), { ...said, database: 'away' })
    for (const coordination of ['joined', 'apart'] as const) {
      assert.deepEqual(await health('/readyz', { coordination }), { ...said, coordination })
    }
  })

  it('refuse while it drains, without Redis, and while nothing can be recorded', async () => {
    for (const [changes, message] of [
      [{ isDraining: true }, /draining/],
      [{ coordination: 'stopped' }, /Redis does not answer/],
      [{ isReady: false }, /^The service is not ready\.$/],
    ] as const) {
      await assert.rejects(health('/readyz', changes), { code: 'service_unavailable', retryAfter: 2, message })
    }
  })
})

describe('health in detail', () => {
  async function askInDetail(changes: Partial<Readiness> = {}): Promise<unknown> {
    const route = operatorHealthRoute({
      readiness: () => ({ ...ready, ...changes }),
      diskSpace: async () => ({ size: 5000, free: 700 }),
    })
    return (await ask([route], `GET ${route.path}`)).body
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
