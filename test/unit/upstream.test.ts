import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { serverActivities } from '../../src/engines/server-activity.ts'
import { openUpstream } from '../../src/engines/upstream.ts'
import type { CallEnd, Engine, EngineCall } from '../../src/ports/engine.ts'
import { scriptedEngine, type Script, type ScriptedEngine } from '../support/scripted-engine.ts'
import { eventually, gate, within } from '../support/waiting.ts'

/** One upstream in front of several engines, without a service. */
async function stage(t: TestContext, scripts: readonly Script[]) {
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
    },
    { events: { healthChanged() {}, callFailed() {} }, servers: serverActivities(), drained },
    {},
  )
  t.after(async () => {
    // The test may have closed it.
    await upstream.close().catch(() => {})
    await Promise.all(engines.map((engine) => engine.close()))
  })
  return { upstream, engines, drained }
}

const call: EngineCall = {
  path: '/chat/completions',
  contentType: 'application/json',
  body: Buffer.from('{}'),
  receiver: { start() {}, data() {} },
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

  it('go to two addresses when they refuse, each once, and not to a third', async (t) => {
    const { upstream, engines } = await stage(t, [refuse, refuse, refuse])
    const end = await ask(upstream)
    assert.ok(end.kind === 'failed' && end.error.code === 'upstream_error')
    assert.deepEqual(callsOf(engines), [1, 1, 0])
  })
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
    it(`stays open until every request that retains it has let go: ${retainers}`, async (t) => {
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
})
