import assert from 'node:assert/strict'
import { existsSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, beforeEach, describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { usageQuery } from '../../src/billing/usage/views.ts'
import type { LedgerRow } from '../../src/ledger/rows.ts'
import type { Store } from '../../src/store/store.ts'
import { settleRunningService } from '../../src/operate/running-service.ts'
import { journalFolder } from '../../src/ledger/journal/journal-files-on-disk.ts'
import { openStore } from '../../src/store/open.ts'
import { takeServiceLock } from '../../src/store/sqlite/service-lock.ts'
import { jsonStage } from '../support/json-stage.ts'
import { chatStage, refusalOf, stageConfig } from '../support/chat-stage.ts'
import { journalDisk, journalRecords, journalRow } from '../support/journal-disk.ts'
import { laneHolds } from '../support/lane.ts'
import { openIntents } from '../support/open-intents.ts'
import { rawChat, rawClient } from '../support/raw-client.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { eventually, gate, within } from '../support/waiting.ts'
import { BUSY_MACHINE_MS, weirProcess } from '../support/weir-process.ts'
import { modelEntry, readEvents, startWeir, type TestWeir } from '../support/weir.ts'

// The prices of the model in test/support/weir.ts, in pico-AUD for each token.
const INPUT = 200_000n
const CACHED = 50_000n
const OUTPUT = 600_000n

const uncached = (row: LedgerRow): bigint =>
  BigInt(row.inputTokens - row.cachedInputTokens) * INPUT +
  BigInt(row.cachedInputTokens) * CACHED +
  BigInt(row.outputTokens) * OUTPUT

/** The database as another program sees it, at this moment. */
function openDatabase(t: TestContext, weir: TestWeir): DatabaseSync {
  const database = new DatabaseSync(join(weir.dataDir, 'weir.db'), { timeout: 5000 })
  t.after(() => database.close())
  return database
}

function rowNow(database: DatabaseSync, requestId: string): Record<string, unknown> | undefined {
  return database.prepare('SELECT * FROM ledger WHERE request_id = ?').get(requestId)
}

/** Blocks all other writers of the database while `work` runs. */
async function locked<Value>(database: DatabaseSync, work: () => Promise<Value>): Promise<Value> {
  database.exec('BEGIN IMMEDIATE')
  try {
    return await work()
  } finally {
    database.exec('COMMIT')
  }
}

/** Waits until there are `count` rows, and returns them. */
async function rowsOf(weir: TestWeir, count: number): Promise<readonly LedgerRow[]> {
  await eventually(`${count} rows`, async () => (await weir.ledger()).length >= count)
  const rows = await weir.ledger()
  assert.equal(rows.length, count)
  return rows
}

async function onlyRow(weir: TestWeir): Promise<LedgerRow> {
  const [row] = await rowsOf(weir, 1)
  assert.ok(row)
  return row
}

describe('the content of a ledger row', () => {
  let engine: ScriptedEngine
  let weir: TestWeir
  let reader: Store | undefined
  let known = new Set<string>()

  before(async () => {
    engine = await scriptedEngine()
    const { serverless, ...rest } = modelEntry([engine.url]) as { serverless: { engine: object; limits: object } }
    weir = await startWeir({
      ...stageConfig([engine.url]),
      models: [
        modelEntry([engine.url]),
        modelEntry([engine.url], {
          id: 'meta/uncached',
          aliases: [],
          pricing: { input_per_million: '0.20', output_per_million: '0.60' },
        }),
        {
          ...rest,
          id: 'meta/reserved',
          aliases: [],
          dedicated: [
            { workspace: 'default', engine: serverless.engine, limits: serverless.limits, per_hour: '12.50' },
          ],
        },
      ],
    })
  })
  after(async () => {
    await reader?.close()
    await weir.stop()
    await engine.close()
  })
  beforeEach(async () => {
    engine.script = {}
    await lookAway()
  })

  /** One reader for all tests, since opening one takes longer than most of the tests. */
  async function rows(): Promise<readonly LedgerRow[]> {
    await settleRunningService(weir.dataDir)
    reader ??= await openStore({ dataDir: weir.dataDir, exclusive: false })
    const workspaces = await reader.workspaces()
    return reader.usage(usageQuery(workspaces[0]?.id ?? '', {}))
  }

  /** Takes note of the rows that are there now. */
  async function lookAway(): Promise<void> {
    known = new Set((await rows()).map(({ requestId }) => requestId))
  }

  /** The one row that has been added since. */
  async function newRow(): Promise<LedgerRow> {
    const found = (await rows()).filter(({ requestId }) => !known.has(requestId))
    assert.equal(found.length, 1)
    return found[0] as LedgerRow
  }

  for (const stream of [false, true]) {
    const way = stream ? 'a stream' : 'a whole answer'

    it(`[M2][M5] ${way}: has the engine’s tokens, each at its rate, under the request’s id`, async () => {
      engine.script = { tokens: ['a', 'b', 'c'], promptTokens: 1000, cachedTokens: 400 }
      const keys = (await (await weir.admin('GET', '/admin/v1/keys')).json()) as { data: { id: string }[] }
      const workspaces = (await (await weir.admin('GET', '/admin/v1/workspaces')).json()) as { data: { id: string }[] }
      const startedAt = Date.now()
      const response = await weir.chat({ model: 'test-8b', stream, max_tokens: 50 })
      await response.text()
      const row = await newRow()
      const { priceVersion, firstTokenMs, durationMs } = row
      assert.deepEqual(row, {
        requestId: response.headers.get('x-request-id'),
        workspaceId: workspaces.data[0]?.id,
        keyId: keys.data[0]?.id,
        model: 'meta/test-8b',
        lane: 'meta/test-8b',
        endpoint: '/chat/completions',
        priceVersion,
        maxTokens: 50,
        startedAt: row.startedAt,
        tier: 'default',
        inputTokens: 1000,
        cachedInputTokens: 400,
        outputTokens: 3,
        images: 0,
        audioMs: 0,
        estimated: false,
        outcome: 'completed',
        httpStatus: 200,
        errorCode: null,
        amount: 600n * INPUT + 400n * CACHED + 3n * OUTPUT,
        queueWaitMs: 0,
        firstTokenMs,
        durationMs,
        settledAt: row.settledAt,
      })
      assert.ok(Number.isInteger(priceVersion) && priceVersion > 0)
      assert.ok(firstTokenMs !== null && firstTokenMs >= 0 && firstTokenMs <= durationMs)
      assert.ok(row.startedAt >= startedAt && row.settledAt >= row.startedAt && row.settledAt <= Date.now())
    })

    it(`[M5] ${way}: never has more cached tokens than input`, async () => {
      engine.script = { tokens: ['a'], promptTokens: 10, cachedTokens: 5000 }
      await (await weir.chat({ stream })).text()
      const row = await newRow()
      assert.deepEqual([row.inputTokens, row.cachedInputTokens, row.amount], [10, 10, 10n * CACHED + OUTPUT])
    })

    it(`[M5] ${way}: bills cached tokens like other input when the model has no rate for them`, async () => {
      engine.script = { tokens: ['a'], promptTokens: 10, cachedTokens: 4 }
      await (await weir.chat({ model: 'meta/uncached', stream })).text()
      const row = await newRow()
      assert.deepEqual([row.cachedInputTokens, row.amount], [4, 10n * INPUT + OUTPUT])
    })

    it(`[C5] ${way}: counts tokens on reserved capacity, which cost nothing since the hour is paid for`, async () => {
      await (await weir.chat({ model: 'meta/reserved', stream })).text()
      const row = await newRow()
      assert.deepEqual([row.lane, row.inputTokens, row.outputTokens, row.amount], ['meta/reserved@default', 10, 3, 0n])
    })

    it(`${way}: has the same usage as the response, reported or estimated`, async () => {
      for (const silentUsage of [false, true]) {
        await lookAway()
        engine.script = { tokens: ['one ', 'two ', 'three '], promptTokens: 77, cachedTokens: 7, silentUsage }
        const response = await weir.chat({
          stream,
          ...(stream ? { stream_options: { include_usage: true } } : {}),
        })
        const text = stream ? ((await readEvents(response)).at(-2) ?? '') : await response.text()
        const { usage } = JSON.parse(text) as {
          usage: {
            prompt_tokens: number
            completion_tokens: number
            total_tokens: number
            prompt_tokens_details: { cached_tokens: number }
          }
        }
        const row = await newRow()
        assert.equal(row.estimated, silentUsage)
        assert.deepEqual(
          [usage.prompt_tokens, usage.completion_tokens, usage.prompt_tokens_details.cached_tokens],
          [row.inputTokens, row.outputTokens, row.cachedInputTokens],
        )
        assert.equal(usage.total_tokens, row.inputTokens + row.outputTokens)
        assert.ok(row.outputTokens > 0 && row.inputTokens > 0)
        assert.equal(row.amount, uncached(row))
      }
    })

    it(`${way}: uses an estimate when the engine’s count is impossible, and keeps serving`, async () => {
      for (const counts of [
        { prompt_tokens: 9_007_199_254_740_991, completion_tokens: 9_007_199_254_740_991 },
        { prompt_tokens: 10, completion_tokens: 9_007_199_254_740_991 },
        { prompt_tokens: -5, completion_tokens: 3 },
        { prompt_tokens: 1.5, completion_tokens: 3 },
        { prompt_tokens: '10', completion_tokens: '3' },
        { prompt_tokens: 10, completion_tokens: -3 },
      ]) {
        await lookAway()
        const choice = { index: 0, message: { content: 'Hi' }, delta: { content: 'Hi' }, finish_reason: 'stop' }
        const answer = JSON.stringify({ choices: [choice], usage: counts })
        engine.script = {
          handle: (_call, response) => void response.end(stream ? `data: ${answer}\n\ndata: [DONE]\n\n` : answer),
        }
        const response = await within(3000, 'the answer', weir.chat({ stream }))
        assert.equal(response.status, 200)
        await within(3000, 'its end', response.text())
        const row = await newRow()
        assert.ok(row.estimated, JSON.stringify(counts))
        assert.ok(row.inputTokens < 1000 && row.outputTokens < 1000 && row.outputTokens > 0)
      }
      engine.script = {}
      assert.equal((await within(3000, 'the next answer', weir.chat({}))).status, 200)
    })
  }

  it('[Q5] a row has the same wait in the queue as the header', async (t) => {
    const held = gate()
    const stage = await chatStage(t, {
      limits: { max_concurrent_requests: 1 },
      script: () => ({
        async handle(_call, response) {
          await held.opened
          response.end(
            JSON.stringify({
              choices: [{ message: { content: 'x' }, finish_reason: 'stop' }],
              usage: { prompt_tokens: 1 },
            }),
          )
        },
      }),
    })
    const first = stage.weir.chat({})
    await stage.engine.arrived(1)
    const second = stage.weir.chat({})
    await sleep(60)
    held.open()
    await first
    const waited = Number((await second).headers.get('x-queue-wait-ms'))
    assert.ok(waited > 0)
    const rows = await rowsOf(stage.weir, 2)
    assert.deepEqual(
      rows.map(({ queueWaitMs }) => queueWaitMs).toSorted((a, b) => a - b),
      [0, waited],
    )
  })

  it('the rates are those at admission, even if they change before the answer ends', async () => {
    const held = gate()
    engine.script = () => ({
      async handle(_call, response) {
        await held.opened
        response.end(
          JSON.stringify({
            choices: [{ message: { content: 'x' }, finish_reason: 'stop' }],
            usage: { prompt_tokens: 7, completion_tokens: 5 },
          }),
        )
      },
    })
    const arrived = engine.calls.length + 1
    const answer = weir.chat({ model: 'meta/uncached' })
    await engine.arrived(arrived)
    const path = '/admin/v1/workspaces/default/prices/meta/uncached'
    const pricing = { input_per_million: '1.00', output_per_million: '2.00' }
    assert.equal((await weir.admin('PUT', path, pricing)).status, 200)
    held.open()
    await (await answer).text()
    const before = await newRow()
    assert.equal(before.amount, 7n * INPUT + 5n * OUTPUT)

    known.add(before.requestId)
    await (await weir.chat({ model: 'meta/uncached' })).text()
    const later = await newRow()
    assert.equal(later.amount, 7n * 1_000_000n + 5n * 2_000_000n)
    assert.ok(later.priceVersion > before.priceVersion)
  })

  it('[M6] a request is billed at the price when it is admitted, not when it arrived', async (t) => {
    const held = gate()
    let calls = 0
    const { weir, engine } = await chatStage(t, {
      limits: { max_concurrent_requests: 1 },
      script: () => (calls++ === 0 ? { hold: { afterTokens: 0, until: held.opened } } : {}),
    })
    const first = weir.chat({})
    await engine.arrived(1)
    const second = weir.chat({})
    await laneHolds(weir, 1, 1)
    const path = `/admin/v1/workspaces/default/prices/meta/test-8b`
    const pricing = { input_per_million: '1.00', output_per_million: '2.00' }
    assert.equal((await weir.admin('PUT', path, pricing)).status, 200)
    held.open()
    await Promise.all([first, second].map(async (answer) => (await answer).text()))
    const rows = await rowsOf(weir, 2)
    assert.deepEqual(
      rows.map(({ amount }) => amount),
      [10n * INPUT + 3n * OUTPUT, 10n * 1_000_000n + 3n * 2_000_000n],
    )
  })

  it('a request that is refused before an engine is called has no row', async (t) => {
    const held = gate()
    const stage = await chatStage(t, {
      limits: { max_concurrent_requests: 1, max_queue_depth: 1, max_wait_ms: 200, token_budget: 2000 },
      script: () => ({
        async handle(_call, response) {
          await held.opened
          response.end()
        },
      }),
    })
    const running = stage.weir.chat({})
    await stage.engine.arrived(1)
    const refused = [
      stage.weir.chat({}), // times out in the queue
      stage.weir.chat({ temperature: 9 }),
      stage.weir.chat({ model: 'no/such' }),
      stage.weir.chat({}, { key: 'wrong' }),
      stage.weir.chat({ max_tokens: 4000 }),
    ]
    const codes = await Promise.all(refused.map(async (it) => (await refusalOf(await it)).code))
    assert.deepEqual(codes, [
      'model_overloaded',
      'invalid_value',
      'model_not_found',
      'invalid_api_key',
      'token_budget_exceeded',
    ])
    await eventually('one request is open', () => openIntents(stage.weir.dataDir) === 1)
    assert.equal((await stage.weir.ledger()).length, 0)
    held.open()
    await running
    assert.equal((await onlyRow(stage.weir)).outcome, 'engine_failed')
    assert.equal(openIntents(stage.weir.dataDir), 0)
  })
})

describe('the number of ledger rows', () => {
  it('is one for each id with hundreds of concurrent requests', async (t) => {
    const { weir, engine } = await chatStage(t, {
      limits: { max_concurrent_requests: 50, max_queue_depth: 1000, token_budget: 100_000_000 },
    })
    const ids = await Promise.all(
      Array.from({ length: 300 }, async (_, index) => {
        const response = await weir.chat({ stream: index % 2 === 0 })
        assert.equal(response.status, 200)
        await response.text()
        return response.headers.get('x-request-id') ?? ''
      }),
    )
    const rows = await weir.ledger()
    assert.deepEqual(rows.map(({ requestId }) => requestId).toSorted(), ids.toSorted())
    assert.equal(engine.calls.length, 300)
    assert.ok(rows.every(({ outcome, amount }) => outcome === 'completed' && amount === 10n * INPUT + 3n * OUTPUT))
    assert.equal(openIntents(weir.dataDir), 0)
  })
})

describe('the ledger before the last byte', () => {
  it('[DONE] arrives when the row is already in the journal', async (t) => {
    const { weir } = await chatStage(t)
    for (let sent = 0; sent < 20; sent++) {
      const client = await rawClient(weir.base)
      let found: unknown
      client.socket.on('data', () => {
        if (!client.received.includes('data: [DONE]')) return
        const id = /x-request-id: (\w+)/i.exec(client.received)?.[1] ?? ''
        found ??= journalRow(weir.dataDir, id)?.outcome ?? 'no row'
      })
      client.send(rawChat(weir.key, { stream: true }))
      await client.sees('data: [DONE]')
      assert.equal(found, 'completed')
      client.leave()
    }
  })

  it('the engine does not wait until the intent is durable, but the intent is in the journal', async (t) => {
    const held = gate()
    const { weir, engine } = await chatStage(t, { script: { hold: { afterTokens: 0, until: held.opened } } })
    const disk = journalDisk(t, weir.dataDir)
    const answer = await disk.holdDuring(async () => {
      const sent = weir.chat({})
      await engine.arrived(1)
      return { sent }
    })
    await eventually('the intent is there', () => openIntents(weir.dataDir) === 1)
    held.open()
    assert.equal((await answer.sent).status, 200)
  })

  for (const how of ['a stream', 'a whole answer', 'a broken stream'] as const) {
    it(`${how} does not end before its row is durable`, async (t) => {
      const finish = gate()
      const stream = how !== 'a whole answer'
      const { weir, engine } = await chatStage(t, {
        script: {
          async handle(_call, response) {
            const word = { choices: [{ index: 0, delta: { content: 'word' }, finish_reason: null }] }
            if (stream) response.write(`data: ${JSON.stringify(word)}\n\n`)
            await finish.opened
            const end = { index: 0, delta: {}, message: { content: 'word' }, finish_reason: 'stop' }
            const text = JSON.stringify({ choices: [end], usage: { prompt_tokens: 5, completion_tokens: 1 } })
            if (how === 'a broken stream') response.end()
            else response.end(stream ? `data: ${text}\n\ndata: [DONE]\n\n` : text)
          },
        },
      })
      const disk = journalDisk(t, weir.dataDir)
      const client = await rawClient(weir.base)
      client.send(rawChat(weir.key, { stream }, { Connection: 'close' }))
      await engine.arrived(1)
      if (stream) await client.sees('word')
      await disk.holdDuring(async () => {
        finish.open()
        await sleep(300)
        assert.doesNotMatch(client.received, /\[DONE\]|"error"|chat\.completion"|\r\n0\r\n/)
        assert.ok(!client.isClosed)
      })
      await client.closed()
      assert.match(client.received, how === 'a broken stream' ? /upstream_error/ : stream ? /\[DONE\]/ : /"word"/)
      assert.equal((await onlyRow(weir)).outcome, how === 'a broken stream' ? 'engine_broke' : 'completed')
    })
  }
})

describe('a caller that disconnects', () => {
  it('while the row is written counts as a 499, like at any other time', async (t) => {
    const { weir, engine } = await chatStage(t)
    const disk = journalDisk(t, weir.dataDir)
    const client = await rawClient(weir.base)
    const held = gate()
    engine.script = {
      async handle(_call, response) {
        await held.opened
        response.end(
          JSON.stringify({
            choices: [{ message: { content: 'x' }, finish_reason: 'stop' }],
            usage: { prompt_tokens: 1 },
          }),
        )
      },
    }
    client.send(rawChat(weir.key, {}))
    await engine.arrived(1)
    await disk.holdDuring(async () => {
      held.open()
      await sleep(100)
      client.leave()
      await sleep(100)
    })
    assert.equal((await onlyRow(weir)).outcome, 'completed')
    const counted = async (): Promise<string> => (await weir.admin('GET', '/metrics')).text()
    await eventually('it is counted', async () => /weir_requests_total\{status="499"\} 1/.test(await counted()))
    assert.doesNotMatch(await counted(), /status="0"/)
  })
})

describe('the journal', () => {
  it('is removed when the service has stopped, since everything in it is in the database', async (t) => {
    const { weir } = await chatStage(t)
    for (let round = 0; round < 10; round++) await Promise.all([weir.chat({}), weir.chat({}), weir.chat({})])
    assert.equal(openIntents(weir.dataDir), 0)
    assert.notDeepEqual(journalRecords(weir.dataDir), [])
    await weir.service.stop()
    assert.deepEqual(readdirSync(journalFolder(weir.dataDir)), [])
    assert.equal((await weir.ledger()).length, 30)
  })

  it('is applied a moment later, so that other programs see the rows in the database', async (t) => {
    const { weir } = await chatStage(t)
    const database = openDatabase(t, weir)
    const id = (await weir.chat({})).headers.get('x-request-id') ?? ''
    await eventually('the row is in the database', () => rowNow(database, id)?.['outcome'] === 'completed')
  })

  it('accepts rows while the database is locked, and readers of usage wait for them', async (t) => {
    const { weir } = await chatStage(t)
    const database = openDatabase(t, weir)
    const usage = await locked(database, async () => {
      for (const stream of [false, true, false]) {
        const response = await within(BUSY_MACHINE_MS, 'an answer', weir.chat({ stream }))
        assert.match(await response.text(), /\[DONE\]|"chat\.completion"/)
      }
      const asked = weir.call('/usage')
      await sleep(300)
      return { asked }
    })
    const { data } = (await (await usage.asked).json()) as { data: object[] }
    assert.equal(data.length, 3)
    assert.equal((await weir.ledger()).length, 3)
  })
})

describe('a database that fails', () => {
  /** Every insert into the table fails, as on a full disk: with an error that says nothing about the row. */
  const fill = (database: DatabaseSync, table: string): void =>
    database.exec(`CREATE TRIGGER full BEFORE INSERT ON ${table} BEGIN SELECT json('disk is full'); END`)

  it('delays only readers: the journal keeps the rows, and none is set aside', async (t) => {
    const { weir } = await chatStage(t)
    const database = openDatabase(t, weir)
    fill(database, 'ledger')
    for (const stream of [false, true]) {
      const response = await weir.chat({ stream })
      assert.match(await response.text(), /\[DONE\]|"chat\.completion"/)
    }
    const refusal = await refusalOf(await weir.call('/usage'))
    assert.deepEqual([refusal.status, refusal.code], [503, 'service_unavailable'])
    assert.equal((await weir.call(`${weir.adminUrl}/readyz`, { key: null })).status, 200)
    const metrics = await (await weir.admin('GET', '/metrics')).text()
    assert.ok(Number(/^weir_journal_bytes (\d+)$/m.exec(metrics)?.[1]) > 0, metrics)
    database.exec('DROP TRIGGER full')
    assert.equal((await rowsOf(weir, 2)).length, 2)
    assert.equal(database.prepare('SELECT count(*) AS count FROM ledger_refused').get()?.['count'], 0)
  })
})

describe('a disk that fails', () => {
  const readiness = async (weir: TestWeir): Promise<number> =>
    (await weir.call(`${weir.adminUrl}/readyz`, { key: null })).status

  /** Requests that an engine has answered, and whose rows have failed at least once: new requests would be refused. */
  async function fullWhileAnswering(t: TestContext, bodies: readonly object[]) {
    const held = gate()
    const { weir, engine } = await chatStage(t, { script: { hold: { afterTokens: 0, until: held.opened } } })
    const disk = journalDisk(t, weir.dataDir)
    const answers = bodies.map((body) => weir.chat(body))
    await engine.arrived(bodies.length)
    disk.fill()
    held.open()
    await eventually('the write has failed', async () => (await readiness(weir)) === 503)
    return { weir, answers, disk }
  }

  it('[X1][X2] when it is full: 503, no call of the engine, and normal service afterwards', async (t) => {
    const { weir, answers, disk } = await fullWhileAnswering(t, [{}])
    for (const stream of [false, true, false]) {
      const refusal = await refusalOf(await weir.chat({ stream }))
      assert.deepEqual(
        [refusal.status, refusal.code, refusal.type, refusal.retryAfter],
        [503, 'service_unavailable', 'server_error', '2'],
      )
      assert.doesNotMatch(refusal.message, /space/)
    }
    disk.free()
    assert.equal((await answers[0]!).status, 200)
    await eventually('it is served', async () => (await weir.chat({})).status === 200)
    assert.equal(await readiness(weir), 200)
    await rowsOf(weir, 2)
    const status = (await (await weir.call('/queue/status')).json()) as { data: { in_flight_requests: number }[] }
    assert.equal(status.data[0]?.in_flight_requests, 0)
    assert.equal(openIntents(weir.dataDir), 0)
  })

  it('when rows cannot be written, a stream gets no [DONE], and its row is written later', async (t) => {
    const { weir, answers, disk } = await fullWhileAnswering(t, [{ stream: true }])
    const response = await answers[0]!
    const events = await within(20_000, 'the end', readEvents(response))
    assert.ok(!events.includes('[DONE]'))
    const { error } = JSON.parse(events.at(-1) ?? '') as { error: { code: string; type: string; param: null } }
    assert.deepEqual([error.code, error.type, error.param], ['service_unavailable', 'server_error', null])
    disk.free()
    const row = await onlyRow(weir)
    assert.equal(row.requestId, response.headers.get('x-request-id'))
    assert.deepEqual([row.outcome, row.amount], ['completed', 10n * INPUT + 3n * OUTPUT])
  })

  it('when rows cannot be written, an answer that is being relayed is cut off before its end, and costs nothing', async (t) => {
    const embedder = { categories: ['embedding'], max_completion_tokens: undefined, default_max_tokens: undefined }
    const { weir, post, answer } = await jsonStage(t, { model: embedder, config: {} })
    const input = Array.from({ length: 40 }, (_, index) => `text ${index}`)
    const embedding = Buffer.alloc(2000).toString('base64')
    answer(() => ({ object: 'list', data: input.map((_, index) => ({ object: 'embedding', index, embedding })) }))
    const disk = journalDisk(t, weir.dataDir)
    disk.fill()
    const response = await post('/embeddings', { input, encoding_format: 'base64' })
    assert.equal(response.status, 200)
    await within(20_000, 'the cut', assert.rejects(response.text()))
    disk.free()
    const row = await onlyRow(weir)
    assert.equal(row.requestId, response.headers.get('x-request-id'))
    assert.deepEqual([row.outcome, row.amount], ['withheld', 0n])
  })

  it('when rows cannot be written, a whole answer is withheld, and costs nothing', async (t) => {
    const { weir, answers, disk } = await fullWhileAnswering(t, [{}])
    const response = await within(20_000, 'the answer', answers[0]!)
    const refusal = await refusalOf(response)
    assert.deepEqual([refusal.status, refusal.code], [503, 'service_unavailable'])
    disk.free()
    const row = await onlyRow(weir)
    assert.equal(row.requestId, response.headers.get('x-request-id'))
    assert.deepEqual([row.outcome, row.amount], ['withheld', 0n])
  })

  it('a short failure only delays the answer', async (t) => {
    const { weir, answers, disk } = await fullWhileAnswering(t, [{}, {}, { stream: true }])
    disk.free()
    for (const answer of answers) {
      const response = await answer
      assert.equal(response.status, 200)
      assert.match(await response.text(), /\[DONE\]|"chat\.completion"/)
    }
    assert.equal((await rowsOf(weir, 3)).filter(({ outcome }) => outcome === 'completed').length, 3)
  })
})

describe('a store thread that ends', () => {
  /** Ends the threads of the stores that the service has used so far. */
  async function endThreads(posted: { readonly calls: readonly { readonly this: unknown }[] }): Promise<void> {
    const workers = new Set(posted.calls.map((call) => call.this as Worker))
    await Promise.all([...workers].map((worker) => worker.terminate()))
  }

  it('is replaced, and no row of a running request is lost', async (t) => {
    const { mock: posted } = t.mock.method(Worker.prototype, 'postMessage')
    const held = gate()
    const { weir, engine } = await chatStage(t, { script: { hold: { afterTokens: 1, until: held.opened } } })
    await (await weir.admin('GET', '/admin/v1/usage?workspace=default')).text()
    const answers = [weir.chat({}), weir.chat({ stream: true })]
    await engine.arrived(2)
    await endThreads(posted)
    held.open()
    for (const answer of answers) {
      const response = await within(20_000, 'the answer', answer)
      assert.equal(response.status, 200)
      assert.match(await within(20_000, 'its end', response.text()), /\[DONE\]|"chat\.completion"/)
    }
    const readiness = async (): Promise<number> => (await weir.call(`${weir.adminUrl}/readyz`, { key: null })).status
    await eventually('it is ready again', async () => (await readiness()) === 200)
    await eventually('it serves again', async () => (await weir.chat({})).status === 200)
    const rows = await weir.ledger()
    assert.ok(rows.length >= 3 && rows.every(({ outcome }) => outcome === 'completed'))
    assert.equal(rows.length, engine.calls.length)
    const usage = await weir.admin('GET', '/admin/v1/usage?workspace=default')
    assert.equal(usage.status, 200, 'reports have a thread of their own, which is back as well')
  })

  it('does not free the directory: the service keeps its lock, and serves from the journal', async (t) => {
    const { mock: posted } = t.mock.method(Worker.prototype, 'postMessage')
    const { weir } = await chatStage(t)
    await (await weir.chat({})).text()
    await endThreads(posted)
    assert.throws(() => takeServiceLock(weir.dataDir), /locked/)
    assert.equal((await weir.chat({})).status, 200)
    await rowsOf(weir, 2)
  })

  it('makes the process end with code 1 when the data directory is gone', async (t) => {
    const engine = await scriptedEngine()
    t.after(() => engine.close())
    const preload = new URL('../support/end-threads-on-signal.mjs', import.meta.url)
    const weir = await weirProcess(stageConfig([engine.url]), { NODE_OPTIONS: `--import=${preload.href}` })
    t.after(() => weir.remove())
    assert.equal((await weir.chat({})).status, 200)
    // A row that is still to be read from the journal ends the process as well, with another message.
    const usage = await fetch(`${weir.base}/usage`, { headers: { authorization: `Bearer ${weir.key}` } })
    assert.equal(((await usage.json()) as { data: unknown[] }).data.length, 1)
    renameSync(weir.dataDir, `${weir.dataDir}-moved`)
    weir.signal('SIGUSR2')
    assert.equal(await within(BUSY_MACHINE_MS, 'it ends', weir.ended()), 1)
    // The pipe may deliver the last line after the process has ended.
    await eventually('it says why', () => weir.log().endsWith('\n'), BUSY_MACHINE_MS)
    assert.match(weir.log(), /^weir: [^\n]*is not the data directory any more; restart the service\n$/m)
    assert.ok(!existsSync(weir.dataDir), 'no empty directory in its place')
  })
})
