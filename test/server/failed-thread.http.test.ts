import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import type { Worker } from 'node:worker_threads'
import { refusalOf } from '../support/chat-stage.ts'
import { nothingIsHeld } from '../support/held-bytes.ts'
import { laneOf } from '../support/lane.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'

/** A body above half a MiB is read in a thread. One that breaks the thread must not break anything else. */

let weir: TestWeir
let engine: ScriptedEngine
before(async () => {
  engine = await scriptedEngine()
  const limits = { token_budget: 100_000_000, max_concurrent_requests: 8 }
  weir = await startWeir({
    models: [
      modelEntry([], {
        context_length: 10_000_000,
        max_completion_tokens: 10_000_000,
        serverless: { engine: { kind: 'openai', urls: [engine.url] }, limits },
      }),
    ],
  })
})
after(async () => {
  await weir.stop()
  await engine.close()
})
beforeEach(() => void (engine.calls.length = 0))

const large = { messages: [{ role: 'user', content: 'word '.repeat(150_000) }] }

/** Sends a body that breaks the thread, and right behind it one that does not. */
async function assertOneRefusal(body: object, spoil: (worker: Worker) => void, arrange = () => {}): Promise<void> {
  const rows = (await weir.ledger()).length
  const threads: Worker[] = []
  let behind: Promise<Response> | undefined
  const started = (worker: Worker): void => {
    if (threads.push(worker) > 1) return
    spoil(worker)
    behind = weir.chat(large)
  }
  arrange()
  process.on('worker', started)
  const refusal = await refusalOf(await weir.chat(body))
  const next = (await behind) ?? assert.fail('no thread was started')
  process.off('worker', started)
  assert.deepEqual([refusal.status, refusal.code, refusal.retryAfter], [503, 'service_unavailable', '2'])
  assert.match(refusal.message, /large requests.*Try again/)
  assert.equal(next.status, 200, await next.text())
  assert.deepEqual([threads.length, engine.calls.length], [2, 1])
  await nothingIsHeld(weir)
  const { in_flight_requests: running, queue_depth: waiting, committed_tokens: tokens } = await laneOf(weir)
  assert.deepEqual([running, waiting, tokens], [0, 0, 0])
  assert.equal((await weir.ledger()).length, rows + 1, 'only the request that was answered is in the ledger')
  // The next test begins without a thread.
  await threads[1]?.terminate()
}

describe('a thread that fails while it reads a body', () => {
  it('fails only that request if it crashes', () => assertOneRefusal(large, (worker) => void worker.terminate()))

  it('fails only that request if it is out of memory', async (t) => {
    const allowMegabytes = (most: number): void => setFlagsFromString(`--max-heap-size=${most}`)
    t.after(() => allowMegabytes(0))
    const strings = Array.from({ length: 60_000 }, (_, index) => `${'word '.repeat(50)}${index}`)
    await assertOneRefusal(
      { ...large, strange: strings },
      // The next thread has as much as ever.
      (worker) => void worker.once('exit', () => allowMegabytes(0)),
      () => allowMegabytes(24),
    )
  })
})
