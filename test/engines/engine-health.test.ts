import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { engineKinds, type EngineDescription, type HealthCheck } from '../../src/catalog/model.ts'
import { healthCheckOf } from '../../src/engines/dialects/health-check.ts'
import { callEnds, callShowsLife, callStarts, openAddress, type EngineAddress } from '../../src/engines/address.ts'
import { watchHealth } from '../../src/engines/health.ts'
import { noActivity, serverActivities } from '../../src/engines/server-activity.ts'
import { AnswerStalled, type Client } from '../../src/engines/http-client/index.ts'
import { turn } from '../support/hand-clock.ts'

interface Probe {
  readonly path: string
  readonly lines: string
  readonly limits: Parameters<EngineAddress['query']>[2]
}

/** What a probe gets: a status, or nothing at all. */
type Answer = number | 'refused' | 'timeout'

const costly: HealthCheck = { path: '/models', isCheap: false, intervalMs: 5000 }
const cheap: HealthCheck = { path: '//health', isCheap: true, intervalMs: 5000 }

/** An address whose probes get the answer that is set. */
function stage(t: TestContext, check = costly, lines = '', first: Answer = 200) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const engine: { answer: Answer } = { answer: first }
  const probes: Probe[] = []
  const changes: boolean[] = []
  const address: EngineAddress = {
    url: 'http://engine/v1',
    prefix: '/v1',
    client: undefined as unknown as Client,
    async query(path, more, limits) {
      probes.push({ path, lines: more, limits })
      if (engine.answer === 'refused') throw new Error('nothing listens')
      if (engine.answer === 'timeout') throw new AnswerStalled('no answer in time')
      return { status: engine.answer, isWhole: true, body: '' }
    },
    inFlight: 0,
    healthy: true,
    isDrained: () => false,
    activity: noActivity(),
    close: () => Promise.resolve(),
  }
  const stop = watchHealth(address, check, lines, (healthy) => changes.push(healthy))
  t.after(stop)

  async function pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 1000) {
      t.mock.timers.tick(1000)
      await turn()
    }
  }

  /** The next probe, however long it is until then. */
  async function next(answer: Answer): Promise<boolean> {
    engine.answer = answer
    const before = probes.length
    for (let waitedMs = 0; probes.length === before && waitedMs < 60_000; waitedMs += 1000) await pass(1000)
    return address.healthy
  }

  return { address, engine, probes, changes, next, pass, stop }
}

describe('the probes of an engine', () => {
  it('accept any answer below 500 as a sign of life, and no other', async (t) => {
    const { next } = stage(t)
    await turn()
    for (const status of [200, 401, 404, 499]) {
      assert.equal(await next(status), true)
      assert.equal(await next(status), true, `status ${status}`)
    }
    for (const answer of [500, 503, 'refused', 'timeout'] as const) {
      await next(answer)
      assert.equal(await next(answer), false, `${answer}`)
      assert.equal(await next(200), true)
    }
  })

  it('need two failures in a row to mark it as down, and one success to mark it as up', async (t) => {
    const { next, changes } = stage(t)
    await turn()
    assert.deepEqual([await next(500), await next(200), await next(500)], [true, true, true])
    assert.deepEqual([await next(500), await next(500), await next(200)], [false, false, true])
    assert.deepEqual(changes, [false, true], 'each change is reported once')
  })

  it('need two failures at the start, too', async (t) => {
    const { address, pass } = stage(t, costly, '', 500)
    await turn()
    assert.equal(address.healthy, true)
    await pass(1000)
    assert.equal(address.healthy, false)
  })

  it('carry the key, so that an engine that needs one does not refuse them', async (t) => {
    const { probes } = stage(t, costly, 'authorization: Bearer secret\r\n')
    await turn()
    assert.equal(probes[0]?.path, '/models')
    assert.equal(probes[0]?.lines, 'authorization: Bearer secret\r\n')
    assert.deepEqual(probes[0]?.limits, { timeoutMs: 5000, maxBytes: 65_536 })
  })

  it('are sent at the configured interval, and sooner after a failure', async (t) => {
    const { engine, probes, pass } = stage(t, { ...costly, intervalMs: 20_000 })
    await turn()
    await pass(19_000)
    assert.equal(probes.length, 1)
    engine.answer = 500
    await pass(1000)
    assert.equal(probes.length, 2)
    await pass(2000)
    assert.equal(probes.length, 4)
  })

  it('are sent at their interval after a failure, too, if that is shorter', async (t) => {
    const { engine, probes } = stage(t, { ...costly, intervalMs: 300 })
    await turn()
    engine.answer = 500
    for (let passed = 0; passed < 900; passed += 100) {
      t.mock.timers.tick(100)
      await turn()
    }
    assert.equal(probes.length, 4)
  })

  it('do not keep the process running', async (t) => {
    const timers = (): number => process.getActiveResourcesInfo().filter((it) => it === 'Timeout').length
    const before = timers()
    const address = { activity: noActivity(), healthy: true, query: async () => ({ status: 200 }) }
    const stop = watchHealth(address as unknown as EngineAddress, costly, '', () => {})
    t.after(stop)
    await turn()
    assert.equal(timers(), before)
  })

  it('change nothing if they end after the engine was closed', async (t) => {
    const { address, engine, probes, changes, pass, stop } = stage(t)
    await turn()
    engine.answer = 500
    const { promise, resolve } = Promise.withResolvers<void>()
    const probe = address.query
    address.query = async (...question) => {
      await promise
      return probe(...question)
    }
    await pass(5000)
    stop()
    resolve()
    await pass(60_000)
    assert.deepEqual([probes.length, changes, address.healthy], [2, [], true])
  })

  it('end when the engine is closed', async (t) => {
    const { probes, next, stop } = stage(t)
    await turn()
    stop()
    await next(500)
    assert.equal(probes.length, 1)
  })
})

describe('an engine with calls in flight', () => {
  it('is not probed, and counts as alive, while they get their answers', async (t) => {
    for (const check of [costly, cheap]) {
      const { address, engine, probes, pass } = stage(t, check)
      await turn()
      engine.answer = 500
      callStarts(address)
      for (let seconds = 0; seconds < 60; seconds++) {
        callShowsLife(address)
        await pass(1000)
      }
      assert.equal(probes.length, 1)
      assert.equal(address.healthy, true)
      t.mock.timers.reset()
    }
  })

  it('is up again when one of them gets its answer', async (t) => {
    const { address, changes, next, pass } = stage(t)
    await turn()
    await next(500)
    await next(500)
    assert.equal(address.healthy, false)
    callStarts(address)
    callShowsLife(address)
    await pass(1000)
    assert.equal(address.healthy, true)
    assert.deepEqual(changes, [false, true])
  })

  it('is not probed while they are silent, if a probe might stop them', async (t) => {
    const { address, engine, probes, pass } = stage(t)
    await turn()
    engine.answer = 500
    callStarts(address)
    await pass(60_000)
    assert.equal(probes.length, 1)
    assert.equal(address.healthy, true)
    callEnds(address, false)
    await pass(10_000)
    assert.equal(address.healthy, false, 'it is probed again when they are over')
  })

  it('is probed while they are silent, if that does no harm; a missing answer proves nothing', async (t) => {
    const { address, probes, next } = stage(t, cheap)
    await turn()
    callStarts(address)
    for (let probe = 0; probe < 5; probe++) assert.equal(await next('timeout'), true)
    assert.equal(probes.length, 6)
    assert.equal(probes[0]?.path, '//health')
    await next('refused')
    assert.equal(await next('refused'), false, 'nothing listens')
    assert.equal(await next(200), true)
    await next(503)
    assert.equal(await next(503), false, 'it says that it is not well')
  })

  it('is down if a call has failed and probes get no answer', async (t) => {
    for (const check of [costly, cheap]) {
      const { address, next } = stage(t, check)
      await turn()
      callStarts(address)
      callStarts(address)
      callEnds(address, true)
      await next('timeout')
      assert.equal(await next('timeout'), false)
      t.mock.timers.reset()
    }
  })

  it('is trusted again after a failed call, once another one gets its answer', async (t) => {
    const { address, probes, pass } = stage(t)
    await turn()
    callStarts(address)
    callStarts(address)
    callEnds(address, true)
    callShowsLife(address)
    await pass(60_000)
    assert.equal(probes.length, 1)
    assert.equal(address.healthy, true)
  })

  it('is not down because of a probe that waited for a call', async (t) => {
    const { address, engine, pass } = stage(t)
    await turn()
    engine.answer = 'timeout'
    const probe = address.query
    // The call begins and ends while the server keeps the probe waiting.
    address.query = (...question) => {
      callStarts(address)
      callShowsLife(address)
      callEnds(address, false)
      return probe(...question)
    }
    await pass(30_000)
    assert.equal(address.healthy, true)
  })
})

describe('an engine without calls in flight', () => {
  it('is probed, however many calls it has answered before', async (t) => {
    const { address, engine, probes, pass } = stage(t)
    await turn()
    engine.answer = 500
    callStarts(address)
    callShowsLife(address)
    callEnds(address, false)
    await pass(5000)
    assert.equal(probes.length, 2)
    await pass(1000)
    assert.equal(address.healthy, false)
  })

  it('is down when a probe gets no answer, if no call preceded it', async (t) => {
    const { address, next } = stage(t)
    callStarts(address)
    callShowsLife(address)
    callEnds(address, false)
    await turn()
    assert.equal(await next('timeout'), true)
    assert.equal(await next('timeout'), false)
  })
})

describe('several addresses of one server', () => {
  it('share what is known of their calls, and with no other server', async () => {
    const servers = serverActivities()
    const urls = ['http://a:1/v1', 'http://a:1/other', 'http://a:2/v1', 'unix:/run/a.sock', 'unix:/run/a.sock:/v2']
    const [one, same, other, socket, sameSocket] = urls.map((url) => openAddress(url, 1000, servers, new Set()))
    assert.ok(one && same && other && socket && sameSocket)
    callStarts(one)
    callStarts(socket)
    assert.deepEqual(
      [one, same, other, socket, sameSocket].map(({ activity, inFlight }) => [activity.inFlight, inFlight]),
      [
        [1, 1],
        [1, 0],
        [0, 0],
        [1, 1],
        [1, 0],
      ],
    )
    await Promise.all([one, same, other, socket, sameSocket].map((address) => address.close()))
    const reopened = openAddress('http://a:1/v1', 1000, servers, new Set())
    assert.equal(reopened.activity.inFlight, 0, 'nothing is kept of a server without addresses')
    await reopened.close()
  })
})

describe('the health check of each kind of engine', () => {
  const checkOf = (kind: EngineDescription['kind'], path?: string): HealthCheck =>
    healthCheckOf({ kind, health: { path, intervalMs: 7000 } } as EngineDescription)

  it('uses a path that costs nothing, if its kind has one', () => {
    const costlyKinds = engineKinds.filter((kind) => !checkOf(kind).isCheap)
    assert.deepEqual(costlyKinds, ['embedded', 'openai', 'cohere', 'jina', 'sdcpp'])
    for (const kind of ['vllm', 'sglang', 'llamacpp', 'tei'] as const) {
      assert.deepEqual(checkOf(kind), { path: '//health', isCheap: true, intervalMs: 7000 })
    }
    assert.deepEqual(checkOf('openai'), { path: '/models', isCheap: false, intervalMs: 7000 })
  })

  it('uses the path that the catalog gives, which is on the server itself', () => {
    for (const kind of ['openai', 'vllm'] as const) {
      assert.deepEqual(checkOf(kind, '/ping'), { path: '//ping', isCheap: true, intervalMs: 7000 })
    }
  })
})
