import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { seededRandom } from '../../src/shared/seeded-random.ts'
import type { LedgerRow } from '../../src/ledger/rows.ts'
import { stageConfig } from '../support/chat-stage.ts'
import { nothingIsHeld } from '../support/held-bytes.ts'
import { runLength } from '../support/long-run.ts'
import { rawChat, rawClient } from '../support/raw-client.ts'
import { scriptedEngine, type EngineCallSeen, type ScriptedEngine } from '../support/scripted-engine.ts'
import { eventually, gate } from '../support/waiting.ts'
import { startWeir, type TestWeir } from '../support/weir.ts'

const STREAMS = runLength(30, 1000)
const AT_ONCE = 25
const random = seededRandom(6)
const whole = (below: number): number => Math.floor(random() * below)

let engine: ScriptedEngine
let weir: TestWeir

before(async () => {
  engine = await scriptedEngine()
  const limits = { max_concurrent_requests: 100, token_budget: 1_000_000 }
  weir = await startWeir(stageConfig([engine.url], { limits }))
})
after(async () => {
  await weir.stop()
  await engine.close()
})

const tokens = Array.from({ length: 64 }, (_, index) => `<${index + 1}>`)
const seedOf = (call: EngineCallSeen): number => Number(call.body['seed'])

/** Runs `count` of them, a few at a time. */
async function inCrowds(count: number, one: (index: number) => Promise<void>): Promise<void> {
  let next = 0
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (let index = next++; index < count; index = next++) await one(index)
    }),
  )
}

async function rowsById(count: number): Promise<ReadonlyMap<string, LedgerRow>> {
  let rows: readonly LedgerRow[] = []
  await eventually('every stream is settled', async () => (rows = await weir.ledger()).length >= count, 30_000)
  return new Map(rows.map((row) => [row.requestId, row]))
}

const idIn = (received: string): string => /X-Request-Id: (\w+)/i.exec(received)?.[1] ?? assert.fail(received)

describe('streams that end early', () => {
  it('are billed exactly the tokens the engine had produced', async () => {
    const plans = Array.from({ length: STREAMS }, () => ({
      produced: whole(tokens.length),
      promptTokens: 1 + whole(900),
      ending: (['reset', 'close', 'engine reset', 'engine end'] as const)[whole(4)]!,
    }))
    engine.script = (call) => {
      const { produced, promptTokens, ending } = plans[seedOf(call)]!
      const script = { tokens, promptTokens, cachedTokens: promptTokens >> 1, continuousUsage: true }
      if (ending === 'engine reset') return { ...script, breakAfter: { tokens: produced, how: 'reset' } }
      if (ending === 'engine end') return { ...script, breakAfter: { tokens: produced, how: 'clean end' } }
      return { ...script, hold: { afterTokens: produced, until: gate().opened } }
    }
    const ids: string[] = []
    await inCrowds(STREAMS, async (index) => {
      const { produced, ending } = plans[index]!
      const client = await rawClient(weir.base)
      client.send(rawChat(weir.key, { stream: true, seed: index, max_tokens: 100 }))
      await client.sees(
        ending.startsWith('engine') ? 'upstream_error' : produced === 0 ? 'assistant' : tokens[produced - 1]!,
      )
      ids[index] = idIn(client.received)
      if (ending === 'close') client.socket.destroy()
      else client.leave()
    })
    const rows = await rowsById(STREAMS)
    let difference = 0
    for (const call of engine.calls) {
      const { promptTokens, ending, produced } = plans[seedOf(call)]!
      const row = rows.get(ids[seedOf(call)]!) ?? assert.fail(`stream ${seedOf(call)} has no row`)
      const isFailure = ending.startsWith('engine') && produced === 0
      assert.equal(
        row.outcome,
        isFailure ? 'engine_failed' : ending.startsWith('engine') ? 'engine_broke' : 'caller_left',
      )
      assert.deepEqual([row.inputTokens, row.cachedInputTokens], isFailure ? [0, 0] : [promptTokens, promptTokens >> 1])
      assert.equal(row.estimated, false)
      difference += Math.abs(row.outputTokens - call.tokensProduced)
    }
    assert.deepEqual([engine.calls.length, rows.size, difference], [STREAMS, STREAMS, 0])
    await nothingIsHeld(weir)
  })

  it('while the engine continues: never more than it produced, never less than the caller received', async () => {
    const from = engine.calls.length
    const known = (await weir.ledger()).length
    engine.script = () => ({ tokens, tokenMs: 1, continuousUsage: true })
    const seen: { id: string; tokens: number }[] = []
    await inCrowds(200, async (index) => {
      const client = await rawClient(weir.base)
      client.send(rawChat(weir.key, { stream: true, seed: index, max_tokens: 100 }))
      await client.sees('assistant')
      await sleep(whole(60))
      seen[index] = { id: idIn(client.received), tokens: client.received.match(/<\d+>/g)?.length ?? 0 }
      client.leave()
    })
    const rows = await rowsById(known + 200)
    for (const call of engine.calls.slice(from)) {
      const { id, tokens: received } = seen[seedOf(call)]!
      const { outputTokens } = rows.get(id) ?? assert.fail(id)
      assert.ok(
        outputTokens <= call.tokensProduced && outputTokens >= received,
        `${received} ≤ ${outputTokens} ≤ ${call.tokensProduced}`,
      )
    }
    await nothingIsHeld(weir)
  })
})
