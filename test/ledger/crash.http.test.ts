import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { stageConfig } from '../support/chat-stage.ts'
import { commandLine } from '../support/command-line.ts'
import { inLongRun } from '../support/long-run.ts'
import { openIntents } from '../support/open-intents.ts'
import { scriptedEngine } from '../support/scripted-engine.ts'
import { eventually } from '../support/waiting.ts'
import { weirProcess, type WeirProcess } from '../support/weir-process.ts'

const ROUNDS = 4
const CALLERS = 16
const ANSWERS_A_ROUND = 25

/** An answer of which the caller has the last byte. */
interface Received {
  readonly requestId: string
  readonly outputTokens: number
}

/** Sends one request after another until the service dies. */
async function keepAsking(weir: WeirProcess, caller: number, received: Received[]): Promise<void> {
  try {
    for (let sent = 0; ; sent++) {
      const stream = (caller + sent) % 2 === 0
      const response = await weir.chat(stream ? { stream, stream_options: { include_usage: true } } : {})
      const text = await response.text()
      if (response.status !== 200 || (stream && !text.endsWith('data: [DONE]\n\n'))) continue
      const last = stream ? (text.split('\n\n').at(-3) ?? '').slice('data: '.length) : text
      const { usage } = JSON.parse(last) as { usage: { completion_tokens: number } }
      received.push({
        requestId: response.headers.get('x-request-id') ?? '',
        outputTokens: usage.completion_tokens,
      })
    }
  } catch {
    // The service is gone, and the connection with it.
  }
}

describe('kill -9', () => {
  it(
    'leaves one row for every answer that a caller received; interrupted requests cost nothing',
    inLongRun,
    async (t) => {
      const engine = await scriptedEngine()
      engine.script = { tokens: ['a', 'b', 'c'], tokenMs: 15, continuousUsage: true }
      const weir = await weirProcess(
        stageConfig([engine.url], {
          limits: { max_concurrent_requests: 12, max_queue_depth: 100, token_budget: 1_000_000 },
        }),
      )
      t.after(async () => {
        await weir.remove()
        await engine.close()
      })
      const received: Received[] = []
      let interrupted = 0
      for (let round = 1; round <= ROUNDS; round++) {
        const before = received.length
        const callers = Array.from({ length: CALLERS }, (_, caller) => keepAsking(weir, caller, received))
        await eventually(
          'answers arrive',
          () => received.length >= before + ANSWERS_A_ROUND && engine.running > 0,
          20_000,
        )
        weir.signal('SIGKILL')
        assert.equal(await weir.ended(), 'SIGKILL')
        await Promise.all(callers)
        await weir.start()

        const rows = await weir.ledger()
        const byId = new Map(rows.map((row) => [row.requestId, row]))
        assert.equal(byId.size, rows.length, 'an id has two rows')
        for (const { requestId, outputTokens } of received) {
          const row = byId.get(requestId)
          assert.equal(row?.outcome, 'completed', `${requestId} was received and has no such row`)
          assert.equal(row.outputTokens, outputTokens)
          assert.ok(row.amount > 0n)
        }
        interrupted = rows.filter(({ outcome }) => outcome === 'interrupted').length
        for (const row of rows) if (row.outcome === 'interrupted') assert.equal(row.amount, 0n)
      }
      assert.ok(interrupted > 0, 'nothing was under way at any of the kills')
      assert.equal((await weir.chat({})).status, 200)
      weir.signal('SIGTERM')
      assert.equal(await weir.ended(), 0)

      const database = new DatabaseSync(join(weir.dataDir, 'weir.db'), { readOnly: true })
      t.after(() => database.close())
      assert.equal(openIntents(weir.dataDir), 0)
      assert.equal(database.prepare('PRAGMA integrity_check').get()?.['integrity_check'], 'ok')
    },
  )

  it('is followed by a start that settles open requests at nothing, once', async (t) => {
    const engine = await scriptedEngine()
    engine.script = { handle: (_call, response) => new Promise((resolve) => response.once('close', resolve)) }
    const weir = await weirProcess(stageConfig([engine.url]))
    t.after(async () => {
      await weir.remove()
      await engine.close()
    })
    const lost = [weir.chat({}), weir.chat({ stream: true })].map((answer) => answer.catch(() => 'lost'))
    await engine.arrived(2)
    // No caller waits for them, but they are delivered anyway.
    await eventually('the intents are in the journal', () => openIntents(weir.dataDir) === 2)
    weir.signal('SIGKILL')
    assert.deepEqual(await Promise.all(lost), ['lost', 'lost'])
    await weir.ended()
    const before = Date.now()
    for (const restart of [1, 2]) {
      await weir.start()
      const rows = await weir.ledger()
      assert.equal(rows.length, 2, `after restart ${restart}`)
      for (const row of rows) {
        assert.deepEqual(
          [row.outcome, row.inputTokens, row.outputTokens, row.amount, row.maxTokens, row.model],
          ['interrupted', 0, 0, 0n, 256, 'meta/test-8b'],
        )
        assert.ok(row.startedAt <= before && row.settledAt >= row.startedAt)
      }
      weir.signal('SIGKILL')
      await weir.ended()
    }
  })

  it('a second service on the same data directory does not start, and the first keeps running', async (t) => {
    const engine = await scriptedEngine()
    const weir = await weirProcess(stageConfig([engine.url]))
    t.after(async () => {
      await weir.remove()
      await engine.close()
    })
    const second = await commandLine(['serve', '--port', '0', '--data', weir.dataDir], {
      environment: { WEIR_ADMIN_PORT: '0' },
    })
    assert.equal(second.code, 1)
    assert.match(second.stderr, /another service is running/)
    assert.equal((await weir.chat({})).status, 200)
  })
})
