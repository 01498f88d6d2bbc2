import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { untraced } from '../../src/server/incoming-request.ts'
import type { EngineDescription, EngineQuestions } from '../../src/catalog/model.ts'
import { serverActivities } from '../../src/engines/server-activity.ts'
import { openUpstream } from '../../src/engines/upstream.ts'
import type { CallEnd, Engine, EngineCall } from '../../src/engines/engine.ts'
import { scriptedEngine, type Script, type ScriptedEngine } from '../support/scripted-engine.ts'
import { eventually, gate, within } from '../support/waiting.ts'

/** One upstream in front of several engines, without a service. */
async function stage(
  t: TestContext,
  scripts: readonly Script[],
  more: Partial<EngineDescription> = {},
  questions: EngineQuestions = {},
) {
  const changes: (readonly [url: string, healthy: boolean])[] = []
  const failures: (readonly [url: string, reason: string])[] = []
  const drained = new Set<string>()
  const engines = await Promise.all(scripts.map(() => scriptedEngine()))
  engines.forEach((engine, index) => (engine.script = scripts[index] ?? {}))
  const upstream = openUpstream(
    {
      kind: 'openai',
      urls: engines.map(({ url }) => url),
      model: 'm',
      apiKey: undefined,
      scores: undefined,
      usage: 'reported',
      balance: 'least_busy',
      cacheTokens: 500_000,
      sharePrefixes: false,
      firstByteTimeoutMs: 10_000,
      idleTimeoutMs: 10_000,
      health: { path: undefined, intervalMs: 5000 },
      ...more,
    },
    {
      events: {
        healthChanged: (...change) => changes.push(change),
        callFailed: (...failure) => failures.push(failure),
      },
      servers: serverActivities(),
      drained,
    },
    questions,
  )
  t.after(async () => {
    // The test may have closed it.
    await upstream.close().catch(() => {})
    await Promise.all(engines.map((engine) => engine.close()))
  })
  return { upstream, engines, drained, changes, failures }
}

const call: EngineCall = {
  path: '/chat/completions',
  contentType: 'application/json',
  body: Buffer.from('{}'),
  receiver: { start() {}, data() {} },
  trace: untraced('', {}),
}

const ask = (upstream: Engine): Promise<CallEnd> => within(10_000, 'the call ends', upstream.run(call).ended)
const callsOf = (engines: readonly ScriptedEngine[]): number[] => engines.map(({ calls }) => calls.length)
const answer: Script = { handle: (_call, response) => void response.end('{}') }
/** Accepts a call and never answers. */
const silent: Script = { handle: (_call, response) => new Promise((resolve) => response.once('close', resolve)) }
const refuse: Script = { refuse: { status: 500, body: {} } }

describe('the calls of an engine with several addresses', () => {
  it('no longer count for an address once they have ended, however they ended', async (t) => {
    const { opened, open } = gate()
    const held: Script = {
      async handle(_call, response) {
        await opened
        response.end('{}')
      },
    }
    const { upstream, engines } = await stage(t, [held, answer])
    const first = upstream.run(call)
    await eventually('the first call arrives', () => callsOf(engines)[0] === 1)
    for (let sent = 1; sent <= 5; sent++) assert.deepEqual(await ask(upstream), { kind: 'ended' })
    assert.deepEqual(callsOf(engines), [1, 5])
    open()
    assert.deepEqual(await first.ended, { kind: 'ended' })
    for (const engine of engines) engine.script = { handle: (_call, response) => void response.destroy() }
    assert.equal((await ask(upstream)).kind, 'failed')
    for (const engine of engines) engine.script = answer
    for (let sent = 1; sent <= 3; sent++) await ask(upstream)
    // Each was sent the call that failed on a used connection, and once more on a new one.
    assert.deepEqual(callsOf(engines), [6, 7], 'both are idle, so the first takes each call')
  })

  it('go to at most two addresses that refuse, each once', async (t) => {
    const { upstream, engines } = await stage(t, [refuse, refuse, refuse])
    const end = await ask(upstream)
    assert.ok(end.kind === 'failed' && end.error.code === 'upstream_error')
    assert.deepEqual(callsOf(engines), [1, 1, 0])
  })
})

it('a call to an engine that has just ended is lost, although it was sent on a connection that had not yet noticed', async (t) => {
  const { upstream, engines } = await stage(t, [answer])
  assert.deepEqual(await ask(upstream), { kind: 'ended' })
  const closed = engines[0]!.close()
  const end = await ask(upstream)
  assert.deepEqual([callsOf(engines), end.kind === 'failed' && end.lost], [[1], 'sent'])
  await closed
})

describe('a drained address', () => {
  it('gets no new call, and its running call finishes', async (t) => {
    const gone = gate()
    const slow: Script = { handle: (_call, response) => gone.opened.then(() => void response.end('{}')) }
    const { upstream, engines, drained } = await stage(t, [slow, answer])
    const [first, second] = engines.map(({ url }) => url)
    const running = ask(upstream)
    await eventually('the first address has the call', () => callsOf(engines)[0] === 1)
    drained.add(first ?? '')
    for (let calls = 0; calls < 3; calls++) assert.equal((await ask(upstream)).kind, 'ended')
    assert.deepEqual(callsOf(engines), [1, 3])
    assert.deepEqual(
      upstream.addresses().map(({ inFlight }) => inFlight),
      [1, 0],
    )
    gone.open()
    assert.equal((await running).kind, 'ended')
    drained.add(second ?? '')
    assert.equal(upstream.usable(), false)
    const end = await ask(upstream)
    assert.equal(end.kind === 'failed' && end.error.code, 'model_unavailable')
    drained.clear()
    assert.equal(upstream.usable(), true)
    assert.equal((await ask(upstream)).kind, 'ended')
  })
})

describe('a call that is aborted', () => {
  it('ends as aborted even if it has no connection yet', async (t) => {
    const { upstream } = await stage(t, [answer])
    const running = upstream.run(call)
    running.abort()
    assert.deepEqual(await within(10_000, 'the call ends', running.ended), { kind: 'aborted' })
  })

  it('is not sent to another address', async (t) => {
    const { upstream, engines } = await stage(t, [silent, answer])
    const running = upstream.run(call)
    await eventually('it arrives', () => callsOf(engines)[0] === 1)
    running.abort()
    assert.deepEqual(await within(10_000, 'the call ends', running.ended), { kind: 'aborted' })
    assert.deepEqual(callsOf(engines), [1, 0])
  })
})

describe('an engine that is closed', () => {
  for (const retainers of [1, 2]) {
    it(`stays open until every request that retains it has released it: ${retainers}`, async (t) => {
      const { upstream } = await stage(t, [answer])
      const letGo = Array.from({ length: retainers }, () => upstream.retain())
      let isClosed = false
      const closing = upstream.close().then(() => (isClosed = true))
      for (const next of letGo) {
        assert.deepEqual(await ask(upstream), { kind: 'ended' })
        assert.equal(isClosed, false)
        next()
      }
      await within(10_000, 'it closes', closing)
    })
  }

  it('leaves no connection open to any of its servers', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { opened, open } = gate()
    const held: Script = { handle: (_call, response) => opened.then(() => void response.end('{}')) }
    const { upstream, engines } = await stage(t, [held, held])
    const ends = [ask(upstream), ask(upstream)]
    await eventually('each has a call', () => callsOf(engines).every((calls) => calls === 1))
    open()
    await Promise.all(ends)
    const connections = (): number[] => engines.map(({ openConnections }) => openConnections)
    assert.deepEqual(connections(), [1, 1])
    await within(10_000, 'it closes', upstream.close())
    // The servers would close them after five seconds.
    await eventually('all are closed', () => connections().every((open) => open === 0), 4000)
  })

  it('closes again, at once, when nothing retains it', async (t) => {
    const { upstream } = await stage(t, [answer])
    const letGo = upstream.retain()
    letGo()
    await within(10_000, 'it closes', upstream.close())
  })
})

describe('an engine', () => {
  it('is called with its key, and without one if it has none', async (t) => {
    for (const apiKey of ['engine-key', undefined]) {
      const { upstream, engines } = await stage(t, [answer], { apiKey })
      await ask(upstream)
      const { authorization } = engines[0]!.calls[0]!.headers
      assert.equal(authorization, apiKey === undefined ? undefined : `Bearer ${apiKey}`)
    }
  })

  it('reports which address failed a call, and why', async (t) => {
    const { upstream, engines, failures } = await stage(t, [refuse])
    await ask(upstream)
    assert.deepEqual(failures, [[engines[0]?.url, 'status 500']])
  })

  it('shows the size of its caches if prompts are balanced by them: as configured, or a guess', async (t) => {
    const sizes = async (more: Partial<EngineDescription>): Promise<(number | undefined)[]> => {
      const { upstream } = await stage(t, [answer, answer], more)
      return upstream.addresses().map(({ cacheTokens }) => cacheTokens)
    }
    assert.deepEqual(await sizes({ cacheTokens: 1234 }), [undefined, undefined])
    assert.deepEqual(await sizes({ cacheTokens: 1234, balance: 'prefix' }), [1234, 1234])
    assert.deepEqual(await sizes({ cacheTokens: undefined, balance: 'prefix' }), [500_000, 500_000])
  })

  it('uses the size of a cache that its server reports, and keeps it', async (t) => {
    const { upstream, engines } = await stage(
      t,
      [answer, answer],
      { cacheTokens: undefined, balance: 'prefix', apiKey: 'engine-key' },
      { cacheSize: { path: '/models', read: (body) => (body.length > 0 ? 700 : undefined) } },
    )
    await eventually('both have said it', () => upstream.addresses().every(({ cacheTokens }) => cacheTokens === 700))
    assert.deepEqual(
      engines.map(({ probes }) => probes.length),
      [1, 1],
    )
  })

  it('is probed, and is not usable while no address is', async (t) => {
    const { upstream, engines, changes } = await stage(
      t,
      [answer, answer],
      {},
      { health: { path: '/models', isCheap: true, intervalMs: 10 } },
    )
    const isUp = (): boolean[] => upstream.addresses().map((address) => address.isUp)
    const [first, second] = engines
    assert.ok(first && second)
    first.healthStatus = 500
    await eventually('the first is down', () => !isUp()[0])
    assert.deepEqual([isUp(), upstream.usable(), changes], [[false, true], true, [[first.url, false]]])
    second.healthStatus = 500
    await eventually('the second is down', () => !isUp()[1])
    assert.equal(upstream.usable(), false)
    first.healthStatus = 200
    await eventually('the first is back', () => isUp()[0] === true)
    assert.deepEqual([upstream.usable(), changes.at(-1)], [true, [first.url, true]])
    await upstream.close()
    const known = changes.length
    first.healthStatus = 500
    await new Promise((resolve) => setTimeout(resolve, 50))
    assert.equal(changes.length, known, 'nothing is reported after it was closed')
  })

  it('that was down has lost its prefixes and its adapters', async (t) => {
    const adapter = { name: 'lora-1', source: '/loras/one' }
    let loads = 0
    const { upstream, engines } = await stage(
      t,
      [answer],
      { balance: 'prefix' },
      {
        health: { path: '/models', isCheap: true, intervalMs: 10 },
        adapters: {
          request: () => {
            loads++
            return { method: 'GET', path: '/load' }
          },
          read: () => ({ kind: 'loaded', fields: {} }),
          isMissing: () => false,
        },
      },
    )
    const prompt = { keys: [1, 2], ends: [500, 1000], characters: 1000, opening: 1, previous: 1 }
    /** The share of the prompt that is expected to be in the cache. */
    const share = async (): Promise<number | undefined> => {
      const running = upstream.run({ ...call, prompt, adapter })
      assert.deepEqual(await within(10_000, 'the call ends', running.ended), { kind: 'ended' })
      return running.learn(0)?.here
    }
    assert.deepEqual([await share(), await share(), loads], [0, 1, 1])
    const engine = engines[0]!
    for (const status of [500, 200]) {
      engine.healthStatus = status
      await eventually(`it answers ${status}`, () => upstream.addresses()[0]?.isUp === (status === 200))
    }
    assert.deepEqual([await share(), loads], [0, 2])
  })

  it('is polled for the size of its cache again when it was down', async (t) => {
    const sizes = [700, 900]
    const { upstream, engines } = await stage(
      t,
      [answer],
      { cacheTokens: undefined, balance: 'prefix' },
      {
        health: { path: '/models', isCheap: true, intervalMs: 10 },
        cacheSize: { path: '/models', read: () => sizes.shift() },
      },
    )
    const sizeIs = (tokens: number) => (): boolean => upstream.addresses()[0]?.cacheTokens === tokens
    await eventually('it has said it', sizeIs(700))
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const engine = engines[0]!
    for (const status of [500, 200]) {
      engine.healthStatus = status
      await eventually(`it answers ${status}`, () => {
        t.mock.timers.tick(1000)
        return upstream.addresses()[0]?.isUp === (status === 200)
      })
    }
    await eventually('it is asked again', () => {
      t.mock.timers.tick(10_000)
      return sizeIs(900)()
    })
  })

  it('is asked for the size of its cache no more once it is closed', async (t) => {
    let reads = 0
    const { upstream } = await stage(t, [answer], {}, { cacheSize: { path: '/models', read: () => void (reads += 1) } })
    t.mock.timers.enable({ apis: ['setTimeout'] })
    // Its first answer has no size, so it would be asked again.
    await eventually('it has been asked', () => reads === 1)
    await upstream.close()
    for (let minute = 0; minute < 3; minute++) {
      t.mock.timers.tick(60_000)
      for (let turn = 0; turn < 20; turn++) await setImmediate()
    }
    assert.equal(reads, 1)
  })
})
