import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { LedgerRow } from '../../src/ledger/rows.ts'
import { simulationSeed } from '../simulation/seed.ts'
import { chanceOf, type Chance } from '../support/fuzz/chance.ts'
import { streamedAnswer, wholeAnswer, type AnswerInput } from '../support/fuzz/fuzz-answers.ts'
import { fuzzStage, type FuzzStage } from '../support/fuzz/fuzz-stage.ts'
import { openWire, type WireResponse } from '../support/fuzz/wire.ts'
import { runLength } from '../support/long-run.ts'

/**
 * Thousands of wrong answers of engines, of every dialect, through the real service. Whatever an engine says, a caller
 * gets a valid answer or a valid error, and pays for exactly what the answer says. WEIR_SEED repeats a run.
 */
const seed = simulationSeed()
const AT_ONCE = 16

let stage: FuzzStage
/** How each request ended for its caller, by request id. */
const endings = new Map<string, Ending>()
let sent = 0

interface Ending {
  readonly input: number
  readonly end: 'answer' | 'error' | 'broke off'
  readonly usage: Readonly<Record<string, unknown>> | undefined
}

before(async () => void (stage = await fuzzStage()))
after(() => stage.close())

async function send(count: number, make: (chance: Chance, mark: number) => AnswerInput): Promise<string> {
  const ends = new Map<string, number>()
  const first = sent
  let next = first
  sent += count
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      const wire = openWire(stage.weir.base)
      for (let input = next++; input < first + count; input = next++) {
        const made = make(chanceOf(seed, input), input)
        stage.engine.plan(input, made.answers)
        try {
          const response = await wire.exchange(requestOf(made))
          const { requestId, ...rest } = check(input, made, response ?? assert.fail('the connection was closed'))
          endings.set(requestId, rest)
          ends.set(rest.end, (ends.get(rest.end) ?? 0) + 1)
        } catch (error) {
          next = Infinity
          wire.close()
          const shown = made.answers.map(({ status, pieces, ending }) => [
            status,
            ending,
            String(Buffer.concat(pieces)),
          ])
          throw new Error(
            `input ${input} of WEIR_SEED=${seed}: ${made.endpoint} ${JSON.stringify(shown).slice(0, 4000)}`,
            {
              cause: error,
            },
          )
        }
      }
      wire.close()
    }),
  )
  return JSON.stringify(Object.fromEntries(ends))
}

function requestOf({ endpoint, contentType, body }: AnswerInput): { method: string; bytes: Buffer } {
  const head = [
    `POST /api/v1${endpoint} HTTP/1.1`,
    'Host: weir.test',
    `Authorization: Bearer ${stage.weir.key}`,
    `Content-Type: ${contentType}`,
    `Content-Length: ${body.length}`,
  ]
  return { method: 'POST', bytes: Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body]) }
}

function check(input: number, made: AnswerInput, response: WireResponse): Ending & { requestId: string } {
  const { status, headers, body, isBroken } = response
  const text = body.toString('utf8')
  assert.ok(!isBroken, `the response broke off: ${text.slice(-500)}`)
  const requestId = headers.get('x-request-id') ?? ''
  if (status !== 200) {
    assert.ok([400, 413, 502, 503, 504].includes(status), `${status}: ${text}`)
    checkError(JSON.parse(text))
    return { requestId, input, end: 'error', usage: undefined }
  }
  if (made.isStream) return { requestId, input, ...checkStream(text) }
  const isJson = headers.get('content-type') === 'application/json'
  const { usage } = (isJson ? JSON.parse(text) : {}) as { usage?: Ending['usage'] }
  return { requestId, input, end: 'answer', usage }
}

function checkError(body: unknown): void {
  const { error } = body as { error: object }
  assert.deepEqual(Object.keys(error).toSorted(), ['code', 'message', 'param', 'type'])
}

function checkStream(text: string): Omit<Ending, 'input'> {
  assert.ok(text.endsWith('\n\n'))
  const data = text
    .slice(0, -2)
    .split('\n\n')
    .map((event) => {
      assert.ok(event.startsWith('data: ') && !event.includes('\n'), event)
      return event.slice('data: '.length)
    })
  const isDone = data.at(-1) === '[DONE]'
  const events = (isDone ? data.slice(0, -1) : data).map((it) => JSON.parse(it) as Record<string, unknown>)
  const last = events.at(-1) ?? assert.fail('no event')
  if (!isDone) {
    checkError(last)
    return { end: 'broke off', usage: undefined }
  }
  for (const { choices } of events) {
    for (const { index, finish_reason: reason } of choices as Record<string, unknown>[]) {
      assert.ok(Number.isInteger(index), `index ${JSON.stringify(index)}`)
      assert.ok(reason === null || typeof reason === 'string', `finish_reason ${JSON.stringify(reason)}`)
    }
  }
  return { end: 'answer', usage: last['usage'] as Ending['usage'] }
}

/** What the answer says is what the row says. */
function checkRow(row: LedgerRow, { end, usage }: Ending): void {
  const { outcome, inputTokens, cachedInputTokens, outputTokens, audioMs, amount } = row
  switch (end) {
    case 'answer': {
      assert.equal(outcome, 'completed')
      if (!usage) break
      if (usage['type'] === 'duration') return assert.equal(usage['seconds'], audioMs / 1000)
      const { prompt_tokens_details: details, completion_tokens: output = 0 } = usage
      const cached = (details as { cached_tokens: number } | undefined)?.cached_tokens ?? 0
      assert.deepEqual(
        [usage['prompt_tokens'], cached, output],
        [inputTokens, cachedInputTokens, outputTokens],
        'the usage in the answer',
      )
      break
    }
    case 'error':
      assert.deepEqual([outcome, amount], ['engine_failed', 0n])
      break
    case 'broke off':
      if (outcome === 'engine_failed') assert.equal(amount, 0n)
      else assert.equal(outcome, 'engine_broke')
  }
  for (const count of [inputTokens, cachedInputTokens, outputTokens, audioMs]) {
    assert.ok(Number.isSafeInteger(count) && count >= 0)
  }
  assert.ok(cachedInputTokens <= inputTokens && amount >= 0n)
}

const WARMING = runLength(50, 500)
const WHOLE = runLength(100, 4000)
const STREAMED = runLength(100, 4000)

describe(`a fuzz of engines' answers, WEIR_SEED=${seed}`, () => {
  it('is answered once the service is warm', async () => {
    await send(WARMING, wholeAnswer)
    await send(WARMING, streamedAnswer)
    stage.measure()
  })

  it(`${WHOLE} complete answers`, async (t) => t.diagnostic(await send(WHOLE, wholeAnswer)))
  it(`${STREAMED} streams`, async (t) => t.diagnostic(await send(STREAMED, streamedAnswer)))

  it('leaves nothing behind: lanes, reservations, intents, spool, connections, memory and log are as before', () =>
    stage.assertAtRest())

  it('bills what the answers report, and nothing for a failure', async () => {
    const rows = new Map((await stage.ledger()).map((row) => [row.requestId, row]))
    for (const [requestId, end] of endings) {
      const row = rows.get(requestId)
      try {
        checkRow(row ?? assert.fail('no row'), end)
      } catch (error) {
        throw new Error(
          `input ${end.input} of WEIR_SEED=${seed}: ${JSON.stringify({ ...row, amount: String(row?.amount) })}`,
          { cause: error },
        )
      }
    }
    assert.equal(rows.size, endings.size)
  })
})
