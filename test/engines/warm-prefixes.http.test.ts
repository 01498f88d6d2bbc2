import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { stageConfig } from '../support/chat-stage.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { eventually, gate } from '../support/waiting.ts'
import { startWeir, type TestWeir } from '../support/weir.ts'

/** The real service with one model on several engines. */
async function stage(t: TestContext, count: number, engine: object = {}) {
  const engines = await Promise.all(Array.from({ length: count }, () => scriptedEngine()))
  let weir: TestWeir | undefined
  t.after(async () => {
    await weir?.stop()
    await Promise.all(engines.map((it) => it.close()))
  })
  const urls = engines.map(({ url }) => url)
  weir = await startWeir(stageConfig(urls, { engine, model: { context_length: 100_000 } }))
  return { weir, engines }
}

type Message = { role: string; content: string }
const prose = (length: number, seed: number): string => `${seed} lines of code `.repeat(length).slice(0, length)
const opening = (seed: number): Message[] => [
  { role: 'system', content: prose(4000, seed) },
  { role: 'user', content: `What do you make of ${seed}?` },
]
const nextTurn = (seed: number): Message[] => [
  { role: 'assistant', content: prose(200, seed) },
  { role: 'user', content: prose(600, seed + 1) },
]

async function ask(weir: TestWeir, messages: Message[], init: { key?: string } = {}): Promise<Response> {
  const response = await weir.chat({ messages, max_tokens: 5 }, init)
  assert.equal(response.status, 200, await response.clone().text())
  await response.text()
  return response
}

const callsOf = (engines: readonly ScriptedEngine[]): number[] => engines.map(({ calls }) => calls.length)

const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0)

describe('a model with several addresses', () => {
  it('answers each turn of a conversation where the turns before were answered', async (t) => {
    const { weir, engines } = await stage(t, 3)
    const used = new Set<number>()
    for (let session = 1; session <= 8; session++) {
      const before = callsOf(engines)
      const messages = opening(session)
      for (let turn = 0; turn < 4; turn++) {
        await ask(weir, messages)
        messages.push(...nextTurn(turn))
      }
      const made = callsOf(engines).map((calls, index) => calls - before[index]!)
      assert.deepEqual(
        made.toSorted((a, b) => a - b),
        [0, 0, 4],
        `session ${session}`,
      )
      used.add(made.indexOf(4))
    }
    assert.ok(used.size > 1, 'different conversations go to different engines')
  })

  it('is balanced by load alone if the catalog configures it', async (t) => {
    const { weir, engines } = await stage(t, 3, { balance: 'least_busy' })
    for (let session = 1; session <= 4; session++) await ask(weir, opening(session))
    assert.deepEqual(callsOf(engines), [4, 0, 0], 'all are idle, so the first takes each call')
  })

  it('tries one other address when the warm one fails, and forgets what was cached there', async (t) => {
    const { weir, engines } = await stage(t, 3)
    const messages = opening(1)
    await ask(weir, messages)
    const warm = engines.find(({ calls }) => calls.length === 1)!
    warm.script = { handle: (_call, response) => void response.destroy() }
    await ask(weir, messages)
    const others = engines.filter((engine) => engine !== warm)
    assert.deepEqual(
      callsOf(others).toSorted((a, b) => a - b),
      [0, 1],
    )
    // It is sent the call once more if the connection had been used.
    const failed = warm.calls.length
    assert.ok(failed === 2 || failed === 3)
    warm.script = {}
    await ask(weir, [...messages, ...nextTurn(1)])
    assert.equal(warm.calls.length, failed, 'it goes where the second answer came from')
    for (const engine of engines) engine.script = { refuse: { status: 500, body: {} } }
    const sent = sum(callsOf(engines))
    const response = await weir.chat({ messages, max_tokens: 5 })
    assert.equal(response.status, 502)
    assert.equal(sum(callsOf(engines)) - sent, 2, 'two sends, and no third')
  })

  it('ignores where prompts of another workspace went', async (t) => {
    for (const isShared of [false, true]) {
      const { weir, engines } = await stage(t, 4, { share_prefixes: isShared })
      await weir.admin('POST', '/admin/v1/workspaces', { name: 'other' })
      const key = (
        (await (await weir.admin('POST', '/admin/v1/keys', { workspace: 'other' })).json()) as { key: string }
      ).key
      let together = 0
      for (let seed = 1; seed <= 12; seed++) {
        const before = callsOf(engines)
        await ask(weir, opening(seed))
        await ask(weir, opening(seed), { key })
        if (callsOf(engines).some((calls, index) => calls === before[index]! + 2)) together++
      }
      assert.ok(isShared ? together === 12 : together < 9, `${together} of 12 prompts went to the same engine`)
    }
  })

  it('spreads a prefix that all callers use', async (t) => {
    const { weir, engines } = await stage(t, 2)
    const { opened, open } = gate()
    for (const engine of engines) engine.script = { hold: { afterTokens: 0, until: opened } }
    const asked = Array.from({ length: 8 }, (_, index) =>
      ask(weir, [opening(1)[0]!, { role: 'user', content: `Question ${index}` }]),
    )
    await eventually('all arrive', () => sum(callsOf(engines)) === 8)
    open()
    await Promise.all(asked)
    assert.ok(Math.min(...callsOf(engines)) >= 1, callsOf(engines).join())
  })
})

describe('the report on cache hits', () => {
  const cacheOf = async (weir: TestWeir) =>
    ((await (await weir.call('/usage/cache')).json()) as { data: Record<string, unknown>[] }).data

  it('shows how much was cached, and where a prompt without hits changed', async (t) => {
    const { weir, engines } = await stage(t, 2)
    for (const engine of engines) engine.script = { promptTokens: 1000, cachedTokens: 0 }
    for (const day of ['2026-11-15', '2026-11-16']) {
      await ask(weir, [{ role: 'system', content: `Today is ${day}. ${prose(4000, 1)}` }, opening(1)[1]!])
    }
    for (const engine of engines) engine.script = { promptTokens: 1000, cachedTokens: 900 }
    await ask(weir, [{ role: 'system', content: `Today is 2026-11-16. ${prose(4000, 1)}` }, opening(1)[1]!])
    const [entry] = await cacheOf(weir)
    assert.deepEqual(entry?.['misses'], { first_use: 1, prefix_changed: 1, evicted: 0, moved: 0 })
    assert.equal(entry?.['cache_hit_rate'], 0.3)
    assert.equal(entry?.['requests'], 3)
    const change = entry?.['latest_change'] as Record<string, number> | undefined
    assert.deepEqual([change?.['message'], change?.['after_character']], [0, 0], 'in the first block')
    const all = (await (await weir.admin('GET', '/admin/v1/usage/cache?workspace=default')).json()) as typeof entry
    assert.deepEqual((all as { data: object[] }).data, [{ workspace: 'default', ...entry }])
    const metrics = await (await weir.admin('GET', '/metrics')).text()
    assert.match(
      metrics,
      /weir_cache_misses_total\{model="meta\/test-8b",lane="meta\/test-8b",cause="prefix_changed"\} 1/,
    )
    assert.match(
      metrics,
      /weir_cache_tokens_total\{workspace="[^"]+",key="[^"]+",model="meta\/test-8b",kind="cached_input"\} 900/,
    )
    const sums = (await (await weir.call('/usage?group_by=key')).json()) as { data: Record<string, unknown>[] }
    assert.equal(sums.data[0]?.['cache_hit_rate'], 0.3)
  })
})
