import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type OpenAI from 'openai'
import { chatLine, linesIn, reached, sdkOf, submit } from '../support/batches.ts'
import { stageConfig } from '../support/chat-stage.ts'
import { startPostgres } from '../support/postgres-server.ts'
import { startRedis } from '../support/redis-server.ts'
import { s3Secrets, s3Stub } from '../support/s3-stub.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { eventually, gate } from '../support/waiting.ts'
import { weirProcess, type WeirProcess, BUSY_MACHINE_MS } from '../support/weir-process.ts'

const LINES = 300
const KILLS = 4

const lines = Array.from({ length: LINES }, (_, index) =>
  // Some of them are refused by the engine.
  chatLine(`line-${index}`, index % 50 === 7 ? { messages: [{ role: 'user', content: 'refuse' }] } : {}),
)

/** How many lines are answered before the next kill. */
const LINES_PER_KILL = 50

/** An engine that answers so many calls until it is allowed more. */
async function engineFor(t: TestContext): Promise<ScriptedEngine & { allow(calls: number): void }> {
  const engine = await scriptedEngine()
  let calls = 0
  let allowed = LINES_PER_KILL
  let more = gate()
  t.after(async () => {
    allow(Infinity)
    await engine.close()
  })
  const isStopped = (): boolean => allowed <= 0
  const turn = async (): Promise<void> => {
    while (isStopped()) await more.opened
    allowed--
  }
  function allow(count: number): void {
    allowed = count
    more.open()
    more = gate()
  }
  engine.script = ({ rawBody }) =>
    rawBody.includes('"refuse"')
      ? { refuse: { status: 400, body: { error: { message: 'no' } } } }
      : { tokens: ['a', 'b'], tokenMs: 5, promptTokens: 1 + (calls++ % 100), hold: { afterTokens: 0, until: turn() } }
  return Object.assign(engine, { allow })
}

/** Resolves when the engine answers no more, with lines waiting for it. */
async function untilHeld(engine: ScriptedEngine): Promise<void> {
  await eventually(
    'lines wait',
    () => engine.calls.filter((it) => it.finished).length >= 20 && engine.running > 0,
    BUSY_MACHINE_MS,
  )
}

/** Every line ends once, and what is billed is what was delivered. Returns the rows of delivered answers that are missing. */
async function check(client: OpenAI, id: string, services: readonly WeirProcess[]): Promise<number> {
  const batch = await reached(client, id, 'completed')
  const answers = await linesIn(client, batch.output_file_id)
  const failures = await linesIn(client, batch.error_file_id)
  assert.deepEqual(
    [...answers, ...failures].map((it) => it.custom_id).toSorted(),
    lines.map((it) => (it as { custom_id: string }).custom_id).toSorted(),
  )
  assert.equal(failures.length, LINES / 50)
  assert.deepEqual(batch.request_counts, { total: LINES, completed: answers.length, failed: failures.length })
  const rows = await services[0]!.ledger()
  const billed = new Map(rows.filter((it) => it.amount > 0n).map((it) => [it.requestId, it]))
  const lineOf = (requestId: string): string => requestId.split('-')[1] ?? ''
  const billedLines = [...billed.keys()].map(lineOf)
  assert.equal(new Set(billedLines).size, billedLines.length, 'a line was billed twice')
  let missing = 0
  for (const { response } of answers) {
    const row = billed.get(response?.request_id ?? '')
    if (!row) missing++
    else assert.equal(row.inputTokens, response?.body.usage.prompt_tokens)
    billed.delete(response?.request_id ?? '')
  }
  assert.deepEqual([...billed.keys()], [], 'billed without an answer')
  return missing
}

describe('a batch whose service is killed again and again', () => {
  it('has every line once in its files, and a row for each answer', async (t) => {
    const engine = await engineFor(t)
    const limits = { max_concurrent_requests: 16 }
    const service = await weirProcess(stageConfig([engine.url], { limits }))
    t.after(() => service.remove())
    const { id } = await submit(sdkOf(service), lines)
    for (let kill = 1; kill <= KILLS; kill++) {
      await untilHeld(engine)
      service.signal('SIGKILL')
      await service.ended()
      engine.calls.length = 0
      engine.allow(kill < KILLS ? LINES_PER_KILL : Infinity)
      await service.start()
    }
    assert.equal(await check(sdkOf(service), id, [service]), 0)
  })
})

describe('a batch that several services run on one PostgreSQL', () => {
  it('has every line once, also if services are killed or stopped', async (t) => {
    const engine = await engineFor(t)
    const [postgres, redis, bucket] = [await startPostgres(), await startRedis(), await s3Stub()]
    t.after(async () => {
      await postgres.remove()
      await redis.remove()
      await bucket.close()
    })
    const files = {
      kind: 's3',
      endpoint: bucket.url,
      bucket: 'weir',
      region: s3Secrets.region,
      access_key_env: 'ACCESS',
      secret_key_env: 'SECRET',
    }
    const config = stageConfig([engine.url], {
      limits: { max_concurrent_requests: 16 },
      config: { coordination: redis.url, files },
    })
    const environment = {
      WEIR_DATABASE_URL: await postgres.createDatabase(),
      ACCESS: s3Secrets.access,
      SECRET: s3Secrets.secret,
    }
    const services = [await weirProcess(config, environment), await weirProcess(config, environment)]
    t.after(async () => {
      for (const service of services) await service.remove()
    })
    const [first, second] = [services[0]!, services[1]!]
    const { id } = await submit(sdkOf(first), lines)
    for (const [victim, signal, allowed] of [
      [first, 'SIGKILL', LINES_PER_KILL],
      [second, 'SIGTERM', LINES_PER_KILL],
      [second, 'SIGKILL', Infinity],
    ] as const) {
      await untilHeld(engine)
      victim.signal(signal)
      await victim.ended()
      engine.calls.length = 0
      engine.allow(allowed)
      await victim.start()
    }
    const client = sdkOf({ key: first.key, base: second.base })
    // A service may have kept an answer and died before its row was settled, and the other one has delivered it.
    assert.ok((await check(client, id, services)) <= 16)
  })
})
