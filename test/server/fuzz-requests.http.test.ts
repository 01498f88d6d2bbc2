import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { errorTable } from '../../src/shared/errors.ts'
import { simulationSeed } from '../simulation/seed.ts'
import { chanceOf } from '../support/fuzz/chance.ts'
import * as requests from '../support/fuzz/fuzz-requests.ts'
import type { RequestMaker } from '../support/fuzz/fuzz-requests.ts'
import { fuzzStage, type FuzzStage } from '../support/fuzz/fuzz-stage.ts'
import { openWire, type WireRequest, type WireResponse } from '../support/fuzz/wire.ts'
import { runLength } from '../support/long-run.ts'

/**
 * Thousands of wrong requests on keep-alive connections, to the real service in its own process. Each input depends on
 * the seed and its number alone; WEIR_SEED repeats a run.
 */
const seed = simulationSeed()
const AT_ONCE = 12

let stage: FuzzStage
/** What callers were told, by request id. */
const responses = new Map<string, WireResponse>()
let sent = 0

before(async () => {
  stage = await fuzzStage()
  await stage.admin('POST', '/admin/v1/workspaces', { name: 'victim' })
})
after(() => stage.close())

async function send(
  count: number,
  url: string,
  token: string,
  make: RequestMaker,
): Promise<ReadonlyMap<number, number>> {
  const statuses = new Map<number, number>()
  const first = sent
  let next = first
  sent += count
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      const wire = openWire(url)
      for (let input = next++; input < first + count; input = next++) {
        const request = make(chanceOf(seed, input), token)
        try {
          const response = check(request, await wire.exchange(request))
          statuses.set(response?.status ?? 0, (statuses.get(response?.status ?? 0) ?? 0) + 1)
        } catch (error) {
          next = Infinity
          wire.close()
          const text = request.bytes.subarray(0, 2000).toString('latin1')
          throw new Error(`input ${input} of WEIR_SEED=${seed}: ${JSON.stringify(text)}`, { cause: error })
        }
      }
      wire.close()
    }),
  )
  return statuses
}

function check(request: WireRequest, response: WireResponse | undefined): WireResponse | undefined {
  if (!response) {
    assert.ok(request.isCut, 'the connection was closed without a response')
    return undefined
  }
  const { status, headers, body, isBroken } = response
  assert.ok(!isBroken || request.isCut, `the response broke off: ${body.toString('utf8', 0, 500)}`)
  assert.ok(status >= 200 && status < 600, String(status))
  assert.notEqual(status, 500, body.toString('utf8', 0, 500))
  assert.match(headers.get('x-request-id') ?? '', /^\w+$/)
  responses.set(headers.get('x-request-id') ?? '', response)
  if (isBroken) return response
  const isJson = headers.get('content-type')?.startsWith('application/json')
  const json = isJson && request.method !== 'HEAD' ? (JSON.parse(body.toString('utf8')) as unknown) : undefined
  if (status >= 400 && request.method !== 'HEAD') checkError(status, json)
  return response
}

function checkError(status: number, json: unknown): void {
  const { error, type: envelope } = json as { error: Readonly<Record<string, unknown>>; type?: unknown }
  assert.deepEqual(Object.keys(error).toSorted(), ['code', 'message', 'param', 'type'])
  const { code, message, param, type } = error
  assert.ok(typeof code === 'string' && code in errorTable)
  assert.equal(errorTable[code as keyof typeof errorTable].status, status)
  // /messages has the envelope and the types of Anthropic's API.
  if (envelope === 'error') assert.match(String(type), /^(\w+_error|request_too_large)$/)
  else assert.equal(errorTable[code as keyof typeof errorTable].type, type)
  assert.ok(typeof message === 'string' && message !== '')
  assert.ok(param === null || typeof param === 'string')
}

const publicKinds: readonly (readonly [name: string, count: number, make: RequestMaker])[] = [
  ['JSON bodies', runLength(50, 4000), requests.jsonBody],
  ['JSON bodies with wrong bytes', runLength(20, 1500), requests.rawBody],
  ['requests that end in the middle', runLength(25, 800), requests.cutRequest],
  ['odd headers', runLength(25, 800), requests.oddHeader],
  ['odd methods, paths and queries', runLength(37, 1500), requests.publicTarget],
  ['forms', runLength(15, 1600), requests.form],
  ['bytes that are hardly HTTP', runLength(20, 500), requests.rawHttp],
]
const adminKinds: readonly (readonly [name: string, count: number, make: RequestMaker])[] = [
  ['operator requests with odd methods, paths and queries', runLength(25, 800), requests.adminTarget],
  ['operator requests with odd bodies', runLength(30, 1000), requests.adminBody],
]

describe(`a fuzz of requests, WEIR_SEED=${seed}`, () => {
  it('is answered once the service is warm', async () => {
    for (const [, , make] of publicKinds) await send(runLength(10, 60), stage.weir.base, stage.weir.key, make)
    for (const [, , make] of adminKinds) await send(runLength(10, 30), stage.weir.adminUrl, stage.operatorToken, make)
    stage.measure()
  })

  for (const [name, count, make] of publicKinds) {
    it(`${count} ${name}`, async (t) => {
      const started = performance.now()
      const statuses = await send(count, stage.weir.base, stage.weir.key, make)
      t.diagnostic(`${JSON.stringify(Object.fromEntries(statuses))} in ${Math.round(performance.now() - started)} ms`)
    })
  }

  for (const [name, count, make] of adminKinds) {
    it(`${count} ${name}`, async (t) => {
      const started = performance.now()
      const statuses = await send(count, stage.weir.adminUrl, stage.operatorToken, make)
      t.diagnostic(`${JSON.stringify(Object.fromEntries(statuses))} in ${Math.round(performance.now() - started)} ms`)
    })
  }

  it('leaves nothing behind: lanes, reservations, intents, spool, connections, memory and log are as before', () =>
    stage.assertAtRest())

  it('has a ledger that matches what callers received', async () => {
    const rows = await stage.ledger()
    for (const { requestId, outcome, amount } of rows) {
      const response = responses.get(requestId)
      // A caller that disconnects at once may do so while the answer is being sent.
      if (!response) assert.match(outcome, /^(caller_left|completed)$/, `${requestId} was never answered`)
      else if (outcome !== 'completed') assert.equal(amount, 0n, `${requestId} failed and was billed`)
      else assert.equal(response.status, 200, requestId)
    }
    assert.ok(rows.some(({ outcome }) => outcome === 'completed'))
  })
})
