import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { loadConfig } from '../../src/config.ts'
import { startService } from '../../src/compose.ts'
import { openStore } from '../../src/store/open.ts'
import { sampleRow } from '../support/ledger-samples.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { eventually } from '../support/waiting.ts'
import { modelEntry, OPERATOR_TOKEN, startWeir, type TestWeir } from '../support/weir.ts'

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

  it('leave the limits for batch work as the file has them', async (t) => {
    const { weir, engines } = await stage(t)
    const urls = engines.map(({ url }) => url)
    await weir.admin('PUT', LANE, chosen)
    const engine = { kind: 'openai', urls, model: 'engine-name' }
    const batch = { reserve_concurrent: 3, max_share: 0.5 }
    weir.writeConfig({ models: [modelEntry(urls, { serverless: { engine, limits: { ...inFile, batch } } })] })
    await weir.reload()
    const lane = await json<Lane & { batch_limits: object; flex: object }>(weir.admin('GET', LANE))
    assert.deepEqual(lane.limits, chosen)
    const reserved = Math.floor(chosen.token_budget / 10)
    const others = { reserve_tokens: reserved, preempt: true, max_queue_depth: chosen.max_queue_depth }
    assert.deepEqual(lane.batch_limits, { ...batch, ...others })
    assert.deepEqual(lane.flex, { max_wait_ms: 600_000 })
  })

  it('survive a restart', async (t) => {
    const { weir } = await stage(t)
    await weir.admin('PUT', LANE, chosen)
    await weir.service.stop()
    const config = loadConfig(
      { config: weir.configFile, data: weir.dataDir },
      { WEIR_OPERATOR_TOKEN: OPERATOR_TOKEN, ENGINE_KEY: 'engine-secret' },
    )
    const again = await startService(config)
    try {
      const response = await fetch(again.adminUrl + LANE, { headers: { authorization: `Bearer ${OPERATOR_TOKEN}` } })
      assert.deepEqual(((await response.json()) as Lane).limits, chosen)
    } finally {
      await again.stop()
    }
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

  it('are audited with their previous values, and rejected if they are invalid', async (t) => {
    const { weir } = await stage(t)
    await weir.admin('PUT', LANE, chosen)
    const { data } = await json<{ data: { action: string; subject: string; before: string; after: string }[] }>(
      weir.admin('GET', '/admin/v1/audit-log'),
    )
    const [entry] = data
    assert.deepEqual([entry?.action, entry?.subject], ['setLaneLimits', 'meta/test-8b'])
    assert.deepEqual((JSON.parse(entry?.before ?? '') as Lane).limits, inFile)
    assert.deepEqual((JSON.parse(entry?.after ?? '') as Lane).limits, chosen)
    assert.equal((await weir.admin('PUT', LANE, { ...chosen, token_budget: 0 })).status, 400)
    assert.equal((await weir.admin('PUT', LANE, { token_budget: 5 })).status, 400)
    assert.equal((await weir.admin('PUT', '/admin/v1/queues/meta/none', chosen)).status, 404)
  })
})

describe('other limits, tried on recorded requests', () => {
  it('run on an engine as fast as its recorded answers, unless another speed is given', async (t) => {
    const { weir } = await stage(t)
    interface Simulated {
      readonly engine: { readonly tokens_per_second: number; readonly source: string }
      readonly proposed: { readonly answer_ms: { readonly p50: number } | null }
    }
    const simulated = (more: object = {}): Promise<Simulated> =>
      json(weir.admin('POST', '/admin/v1/queues/simulate', { lane: 'meta/test-8b', limits: inFile, hours: 1, ...more }))
    assert.equal((await simulated()).engine.source, 'assumed')
    const store = await openStore({ dataDir: weir.dataDir, exclusive: false })
    const [workspace] = await store.workspaces()
    const startedAt = Date.now() - 600_000
    const row = { workspaceId: workspace?.id ?? '', lane: 'meta/test-8b', startedAt, settledAt: startedAt + 5100 }
    // A thousand tokens in five seconds, after a tenth of a second.
    const spoken = { inputTokens: 100, outputTokens: 1000, maxTokens: 1000, firstTokenMs: 100, durationMs: 5100 }
    await store.addRows([sampleRow('spoken', { ...row, ...spoken })])
    await store.close()
    const { engine, proposed } = await simulated()
    assert.deepEqual([engine.tokens_per_second, engine.source], [200, 'recorded'])
    assert.equal(proposed.answer_ms?.p50, 5100)
    const asked = await simulated({ tokens_per_second: 1000 })
    assert.deepEqual([asked.engine.source, asked.proposed.answer_ms?.p50], ['asked', 1100])
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
  })

  it('must be an address of an engine', async (t) => {
    const { weir } = await stage(t)
    for (const url of ['http://127.0.0.1:1/v1', 'embedded']) {
      assert.equal((await weir.admin('POST', '/admin/v1/engines/drain', { url })).status, 404)
    }
  })
})
