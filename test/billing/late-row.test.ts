import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memorySpending } from '../../src/workspaces/spend-limits/memory.ts'
import { parseCatalog } from '../../src/catalog/file.ts'
import { deploymentsOf } from '../../src/catalog/model.ts'
import type { RequestRow } from '../../src/ledger/rows.ts'
import { freeRates } from '../../src/billing/rating/rating.ts'
import { openJournal } from '../../src/ledger/journal/journal.ts'
import { createPipeline } from '../../src/inference/pipeline/pipeline.ts'
import type { Caller } from '../../src/workspaces/workspace.ts'
import type { Engine } from '../../src/engines/engine.ts'
import { untraced } from '../../src/server/incoming-request.ts'
import type { Reply } from '../../src/server/reply.ts'
import type { UsageStore } from '../../src/billing/usage/usage-store.ts'
import { memoryJournal } from '../support/memory-journal.ts'
import { madeJob, parsedBody } from '../support/made-job.ts'

/** The row of a request that the disk does not take in time, and the spend limit. */

const [model] = parseCatalog(
  JSON.stringify({
    models: [
      {
        id: 'meta/a',
        categories: ['llm'],
        context_length: 1000,
        serverless: { engine: { kind: 'vllm', urls: ['http://127.0.0.1:1'] } },
      },
    ],
  }),
  'catalog.yaml',
  () => undefined,
)
const usage = { prompt_tokens: 5, completion_tokens: 3 }
const stream = [
  { choices: [{ index: 0, delta: { role: 'assistant', content: 'Hi' }, finish_reason: null }] },
  { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
  { choices: [], usage },
]
const whole = { choices: [{ index: 0, message: { content: 'Hi' }, finish_reason: 'stop' }], usage }
const PRICE = 3n

function engineAnswering(text: string): Engine {
  return {
    usable: () => true,
    addresses: () => [],
    retain: () => () => {},
    run({ receiver }) {
      receiver.start({})
      receiver.data(Buffer.from(text))
      return {
        ended: Promise.resolve({ kind: 'ended' }),
        isWithEngine: () => true,
        learn: () => undefined,
        abort() {},
        pause() {},
        resume() {},
      }
    },
    close: async () => {},
  }
}

/** Serves a chat while the disk takes no rows. Returns what was spent, and the row that is written in the end. */
async function serveLate(isStream: boolean): Promise<{ spent: bigint; row: RequestRow | undefined }> {
  let now = Date.UTC(2026, 10, 15)
  let isBroken = true
  const clock = { now: () => now, monotonic: () => now, after: () => () => {} }
  const { files, rows } = memoryJournal(() => {
    if (!isBroken) return null
    now += 6000
    return new Error('the disk is full')
  })
  const journal = openJournal({ files, firstSegment: 1, clock, grew() {} })
  const ledger = { ...journal, readable: () => Promise.resolve(), status: () => assert.fail('not called') }
  const store = { usageSums: async () => [] } as unknown as UsageStore
  const spending = await memorySpending(store, clock, { limitReached() {} })
  const answer = isStream
    ? [...stream.map((it) => JSON.stringify(it)), '[DONE]'].map((it) => `data: ${it}\n\n`).join('')
    : JSON.stringify(whole)
  const pipeline = createPipeline({
    ledger,
    spending,
    clock,
    admission: {
      enter(_arrival, decided) {
        const ticket = { leave() {}, keep: () => true }
        decided({ kind: 'admitted', waitMs: 0 }, ticket)
        return ticket
      },
    } as Parameters<typeof createPipeline>[0]['admission'],
    engineOf: () => engineAnswering(answer),
    priceOf: () => ({ version: 1, rates: { ...freeRates, outputPerToken: PRICE } }),
    admitted() {},
    settled() {},
    pastLimit() {},
    cacheUsed() {},
    contradicted() {},
    random: () => 0,
  })
  const body = { model: 'meta/a', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 10, stream: isStream }
  const job = await madeJob('/chat/completions', parsedBody(JSON.stringify(body)), model!, deploymentsOf(model!)[0]!)
  const reply: Reply = {
    isOnRecord: false,
    setWaiting() {},
    trace: untraced('', {}),
    requestId: 'a',
    isGone: false,
    isCut: false,
    countTokens() {},
    onGone: () => () => {},
    holdAnswer() {},
    openAnswer() {},
    sendAnswer() {},
    openStream() {},
    write: () => true,
    onDrain() {},
    end() {},
  }
  const workspace = { id: 'ws', name: 'w', spendLimit: { amount: 1000n, isSoft: false } }
  await assert.rejects(pipeline(job, { workspace, keyId: 'key' } as Caller, reply), /cannot be recorded/)
  isBroken = false
  await journal.flush()
  return { spent: await spending.spent('ws'), row: rows()[0] }
}

describe('a row that the disk does not store in time', () => {
  it('counts against the spend limit for a stream, because the caller has received all but its end', async () => {
    const { spent, row } = await serveLate(true)
    assert.deepEqual([row?.outcome, row?.amount, spent], ['completed', 3n * PRICE, 3n * PRICE])
  })

  it('counts as nothing for a whole answer, which the caller does not get', async () => {
    const { spent, row } = await serveLate(false)
    assert.deepEqual([row?.outcome, row?.amount, spent], ['withheld', 0n, 0n])
  })
})
