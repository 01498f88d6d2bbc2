import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { eventually } from '../support/waiting.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'

/** What an operator sets while the service runs: limits of lanes, and drained addresses. */

const LANE = '/admin/v1/queues/meta/test-8b'
const inFile = { token_budget: 100_000, max_concurrent_requests: 8, max_queue_depth: 16, max_wait_ms: 5000 }
const chosen = { ...inFile, max_concurrent_requests: 1, max_requests_per_workspace: 2 }

async function stage(t: TestContext, addresses = 1): Promise<{ weir: TestWeir; engines: ScriptedEngine[] }> {
  const engines = await Promise.all(Array.from({ length: addresses }, () => scriptedEngine()))
  const weir = await startWeir({ models: [modelEntry(engines.map(({ url }) => url))] })
  t.after(async () => {
    await weir.stop()
    await Promise.all(engines.map((engine) => engine.close()))
  })
  return { weir, engines }
}

const json = async <Body>(response: Promise<Response>): Promise<Body> => (await (await response).json()) as Body

interface Lane {
  readonly limits: typeof inFile
  readonly limits_in_file: typeof inFile | null
}

describe('limits that an operator sets', () => {
  it('take effect at once, beside those in the file, until they are cleared', async (t) => {
    const { weir, engines } = await stage(t)
    const before = await json<Lane>(weir.admin('GET', LANE))
    assert.deepEqual([before.limits, before.limits_in_file], [inFile, null])
    const set = await json<Lane>(weir.admin('PUT', LANE, chosen))
    assert.deepEqual([set.limits, set.limits_in_file], [chosen, inFile])
    const held = Promise.withResolvers<void>()
    engines[0]!.script = { tokens: ['a', 'b'], hold: { afterTokens: 1, until: held.promise } }
    const first = weir.chat({ stream: true }).then((response) => response.text())
    await eventually('the first is at the engine', () => engines[0]!.calls.length === 1)
    const second = weir.chat({ stream: true }).then((response) => response.text())
    const depth = async (): Promise<number> => {
      const { data } = await json<{ data: { queue_depth: number }[] }>(weir.call('/queue/status'))
      return data[0]?.queue_depth ?? -1
    }
    await eventually('the second waits', async () => (await depth()) === 1)
    const third = await weir.chat({})
    const { error } = (await third.json()) as { error: { code: string } }
    assert.deepEqual([third.status, error.code], [429, 'workspace_queue_full'], 'the workspace has two requests there')
    assert.ok(Number(third.headers.get('retry-after')) >= 2)
    const cleared = await json<Lane>(weir.admin('DELETE', LANE))
    assert.deepEqual([cleared.limits, cleared.limits_in_file], [inFile, null])
    await eventually('the second is at the engine too', () => engines[0]!.calls.length === 2)
    held.resolve()
    await Promise.all([first, second])
  })

  it('end when the file changes them, and not when it is read again', async (t) => {
    const { weir, engines } = await stage(t)
    const urls = engines.map(({ url }) => url)
    const limitsNow = async (): Promise<Lane> => json<Lane>(weir.admin('GET', LANE))
    await weir.admin('PUT', LANE, chosen)
    await weir.reload()
    assert.deepEqual((await limitsNow()).limits, chosen)
    const { changes } = await json<{ changes: object[] }>(weir.admin('POST', '/admin/v1/catalog/preview'))
    assert.deepEqual(changes, [], 'the preview compares with what is in force')
    const newer = { ...inFile, max_queue_depth: 32 }
    const engine = { kind: 'openai', urls, model: 'engine-name' }
    weir.writeConfig({ models: [modelEntry(urls, { serverless: { engine, limits: newer } })] })
    await weir.reload()
    const { limits, limits_in_file: limitsInFile } = await limitsNow()
    assert.deepEqual([limits, limitsInFile], [newer, null])
    weir.writeConfig({ models: [modelEntry(urls)] })
    await weir.reload()
    assert.deepEqual((await limitsNow()).limits, inFile, 'and do not come back with the old file')
  })
})

describe('an address that an operator drains', () => {
  interface Drained {
    readonly drained: boolean
    readonly in_flight: number
  }

  it('gets no new calls, shows how many are left, and returns', async (t) => {
    const { weir, engines } = await stage(t, 2)
    const held = Promise.withResolvers<void>()
    for (const engine of engines) engine.script = { tokens: ['a', 'b'], hold: { afterTokens: 1, until: held.promise } }
    // Long enough to be kept in mind: the drained address is the one that has it in its cache.
    const messages = [{ role: 'user', content: 'A weir holds back water. '.repeat(200) }]
    const running = weir.chat({ stream: true, messages }).then((response) => response.text())
    await eventually('an engine has it', () => engines.some(({ calls }) => calls.length === 1))
    const busy = engines.find(({ calls }) => calls.length === 1)!
    const other = engines.find((engine) => engine !== busy)!
    const drained = await json<Drained>(weir.admin('POST', '/admin/v1/engines/drain', { url: busy.url }))
    assert.deepEqual([drained.drained, drained.in_flight], [true, 1])
    held.resolve()
    await running
    for (const engine of engines) engine.script = {}
    for (let asked = 0; asked < 4; asked++) assert.equal((await weir.chat({ messages })).status, 200)
    assert.deepEqual([busy.calls.length, other.calls.length], [1, 4])
    const { data } = await json<{ data: { addresses: (Drained & { url: string })[] }[] }>(
      weir.admin('GET', '/admin/v1/engines'),
    )
    const seen = data[0]?.addresses.find(({ url }) => url === busy.url)
    assert.deepEqual([seen?.drained, seen?.in_flight], [true, 0])
    await weir.admin('POST', '/admin/v1/engines/drain', { url: other.url })
    const refused = await weir.chat({})
    const { error } = (await refused.json()) as { error: { code: string } }
    assert.deepEqual([refused.status, error.code, refused.headers.get('retry-after')], [503, 'model_unavailable', '10'])
    await weir.reload()
    assert.equal((await weir.chat({})).status, 503, 'a reload does not bring it back')
    const back = await json<Drained>(weir.admin('POST', '/admin/v1/engines/undrain', { url: busy.url }))
    assert.equal(back.drained, false)
    assert.equal((await weir.chat({})).status, 200)
    const log = await json<{ data: { action: string }[] }>(weir.admin('GET', '/admin/v1/audit-log'))
    assert.deepEqual(
      log.data.map(({ action }) => action).filter((action) => action.endsWith('Engine')),
      ['undrainEngine', 'drainEngine', 'drainEngine'],
    )
  })

  it('can be removed from the list when no engine has it any more', async (t) => {
    const { weir, engines } = await stage(t)
    const [engine] = engines
    const gone = 'http://127.0.0.1:1/v1'
    const left = async (): Promise<readonly string[]> => {
      const engines = weir.admin('GET', '/admin/v1/engines')
      return (await json<{ drained_without_engine: readonly string[] }>(engines)).drained_without_engine
    }
    weir.writeConfig({ models: [modelEntry([engine?.url ?? '', gone])] })
    assert.equal((await weir.reload()).status, 200)
    assert.equal((await weir.admin('POST', '/admin/v1/engines/drain', { url: gone })).status, 200)
    assert.deepEqual(await left(), [])
    weir.writeConfig({ models: [modelEntry([engine?.url ?? ''])] })
    await weir.reload()
    assert.deepEqual(await left(), [gone])
    const forgotten = await json<Drained>(weir.admin('POST', '/admin/v1/engines/undrain', { url: gone }))
    assert.deepEqual(forgotten, { url: gone, drained: false, in_flight: 0 })
    assert.deepEqual(await left(), [])
    assert.equal((await weir.admin('POST', '/admin/v1/engines/undrain', { url: gone })).status, 404)
    for (const url of [gone, 'embedded'])
      assert.equal((await weir.admin('POST', '/admin/v1/engines/drain', { url })).status, 404)
  })
})
