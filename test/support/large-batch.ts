import { createReadStream, createWriteStream, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pipeline } from 'node:stream/promises'
import type { TestContext } from 'node:test'
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { chatLine } from './batch-lines.ts'
import { reachedWithin, sdkOf } from './batches.ts'
import { stageConfig } from './chat-stage.ts'
import { scriptedEngine } from './scripted-engine.ts'
import { residentBytes, weirProcess } from './weir-process.ts'

/** How much smaller the batch is that a large one is compared with. */
const SMALLER = 5
/** On a machine with other work, a large batch takes minutes. */
const LONG_MS = 3_600_000

/** How much more memory a batch of so many lines and bytes takes than one with a fifth of them, on the same service. */
export async function memoryOfLargeBatch(t: TestContext, lines: number, bytes: number): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-large-'))
  const engine = await scriptedEngine()
  engine.script = { tokens: ['ok'] }
  const config = { batches: { max_file_bytes: 2 ** 28 } }
  const weir = await weirProcess(
    stageConfig([engine.url], { model: { context_length: 100_000 }, limits: { token_budget: 1e9 }, config }),
  )
  t.after(async () => {
    await weir.remove()
    await engine.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const client = sdkOf(weir)
  let most = 0
  const sampling = setInterval(() => (most = Math.max(most, residentBytes(weir.pid))), 50)
  // Calls are kept for tests to read, with their bodies.
  const forgetting = setInterval(() => (engine.calls.length = 0), 50)
  try {
    await run(Math.floor(lines / SMALLER))
    const before = most
    const batch = await run(lines)
    assert.deepEqual(batch.request_counts, { total: lines, completed: lines, failed: 0 })
    const answer = await client.files.content(batch.output_file_id ?? '')
    let read = 0
    for await (const line of createInterface({ input: Readable.fromWeb(answer.body as never) })) {
      read++
      assert.ok(line.includes(`"custom_id":"${read}"`))
    }
    assert.equal(read, lines)
    return most - before
  } finally {
    clearInterval(sampling)
    clearInterval(forgetting)
  }

  async function run(count: number) {
    const path = join(folder, `${count}.jsonl`)
    await pipeline(Readable.from(linesOf(count, Math.floor(bytes / lines))), createWriteStream(path))
    const uploaded = await client.files.create({ file: createReadStream(path), purpose: 'batch' })
    assert.equal(uploaded.bytes, statSync(path).size)
    const { id } = await client.batches.create({
      input_file_id: uploaded.id,
      endpoint: '/v1/chat/completions',
      completion_window: '24h',
    })
    return reachedWithin(LONG_MS, client, id, 'completed', 'failed')
  }
}

function* linesOf(count: number, bytes: number): Generator<string> {
  for (let id = 1; id <= count; id++) {
    const line = JSON.stringify(chatLine(id, { messages: [{ role: 'user', content: '' }] }))
    const text = 'a weir is a low dam '.repeat(Math.ceil(bytes / 20)).slice(0, bytes - line.length - 1)
    yield `${line.replace('"content":""', `"content":"${text}"`)}\n`
  }
}
