import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { inspect } from 'node:util'
import { linePaceOf } from '../../src/batches/line-pace.ts'
import { lineReply, textOf } from '../../src/batches/line-reply.ts'
import { MAX_CUSTOM_ID, pathBelowV1, readLine } from '../../src/batches/lines.ts'
import { answeredLine, failureKind, unansweredLine } from '../../src/batches/result-lines.ts'
import { byteBudget } from '../../src/shared/byte-budget.ts'
import { HEADROOM } from '../../src/shared/json/json-body.ts'
import { parseCatalog } from '../../src/catalog/file.ts'
import { batchLines, type BatchLineParts } from '../../src/inference/routes/batch-lines.ts'
import type { Caller, KeyRules } from '../../src/workspaces/workspace.ts'
import { chatLine } from '../support/batch-lines.ts'
import { turn } from '../support/hand-clock.ts'
import { parsedBody, plainFacts } from '../support/made-job.ts'

/** What a line of a batch consists of: its request, the taker of its answer, its lines in the files, and its pace. */

describe('the request of a line', () => {
  const endpoint = '/v1/chat/completions'
  const line = { ...chatLine('a'), custom_id: 'a' }
  const read = (changes: object) => readLine(Buffer.from(JSON.stringify({ ...line, ...changes })), endpoint)

  it('is its body, as it is written there', () => {
    const { customId, url, body } = readLine(
      Buffer.from(`{"custom_id":"a", "method":"POST","body":{"n": 1.0},"url":"/api/v1/chat/completions"}`),
      endpoint,
    )
    assert.deepEqual([customId, url, body.subarray(HEADROOM).toString()], ['a', endpoint, '{"n": 1.0}'])
  })

  it('has a path below /v1, also as Weir itself names it', () => {
    assert.deepEqual(['/api/v1/files', '/v1/files', '/api/v1'].map(pathBelowV1), ['/v1/files', '/v1/files', '/api/v1'])
  })

  for (const [changes, code, param] of [
    [{ custom_id: undefined }, 'missing_required_parameter', 'custom_id'],
    [{ custom_id: 1 }, 'invalid_value', 'custom_id'],
    [{ custom_id: '' }, 'invalid_value', 'custom_id'],
    [{ custom_id: 'x'.repeat(MAX_CUSTOM_ID + 1) }, 'invalid_value', 'custom_id'],
    [{ method: undefined }, 'missing_required_parameter', 'method'],
    [{ method: 'GET' }, 'invalid_value', 'method'],
    [{ url: undefined }, 'missing_required_parameter', 'url'],
    [{ url: 1 }, 'invalid_value', 'url'],
    [{ url: '/v1/embeddings' }, 'invalid_value', 'url'],
    [{ body: undefined }, 'missing_required_parameter', 'body'],
    [{ body: null }, 'invalid_type', 'body'],
    [{ body: [] }, 'invalid_type', 'body'],
    [{ body: 'text' }, 'invalid_type', 'body'],
  ] as const) {
    it(`is refused with ${inspect(changes).slice(0, 40)}`, () => {
      assert.throws(() => read(changes), { code, param })
    })
  }

  it('has an id of up to 512 characters', () => {
    assert.equal(MAX_CUSTOM_ID, 512)
    assert.equal(read({ custom_id: 'x'.repeat(512) }).customId.length, 512)
  })
})

describe('the job of a line', () => {
  const entry = {
    id: 'meta/a',
    categories: ['llm'],
    context_length: 10_000,
    supported_parameters: [],
    pricing: { input_per_million: '1', output_per_million: '1', batch: '0.5' },
    serverless: { engine: { kind: 'openai', urls: ['http://127.0.0.1:1'] }, limits: {} },
  }
  const models = parseCatalog(JSON.stringify({ models: [entry] }), 'catalog.yaml', () => undefined)
  const [model] = models
  const catalog = { find: () => model, resolve: () => ({ model, deployment: model!.serverless }) }
  const client = { owner: 'ws', isGone: false, onGone: () => () => {}, holdRequest() {} }
  const stage = (priceBatchLines: BatchLineParts['priceBatchLines'], rules?: Partial<KeyRules>) => {
    const endpoints = batchLines({
      ...plainFacts,
      catalog,
      priceBatchLines,
      files: undefined,
    } as unknown as BatchLineParts)
    const caller = { workspace: { id: 'ws', name: 'acme' }, keyId: 'key', rules } as Caller
    // A job changes the bytes of its body.
    const request = () => {
      const text = '{"model":"meta/a","messages":[{"role":"user","content":"Hi"}],"service_tier":"flex"}'
      return { customId: 'a', url: '/v1/chat/completions', body: parsedBody(text).bytes }
    }
    return {
      job: () => endpoints.jobOf(request(), caller, client),
      check: () => endpoints.check(request(), caller, client),
    }
  }

  it('is of the batch tier, whatever the line says, and waits until the price of lines is stored', async () => {
    const storing = Promise.withResolvers<void>()
    const priced: string[] = []
    const { job } = stage((of, workspaceId) => (priced.push(`${of.id} ${workspaceId}`), storing.promise))
    let isMade = false
    const made = job().then((it) => ((isMade = true), it))
    await turn()
    assert.deepEqual([priced, isMade], [['meta/a ws'], false])
    storing.resolve()
    assert.equal((await made).tier, 'batch')
  })

  it('is not made while that price cannot be stored', async () => {
    const { job, check } = stage(() => Promise.reject(new Error('the store is away')))
    await assert.rejects(job(), { code: 'service_unavailable' })
    await check()
  })

  it('is refused if the key may not call the endpoint or the model', async () => {
    const asked: string[] = []
    const allowsEndpoint = (path: string): boolean => (asked.push(path), false)
    const { job, check } = stage(async () => {}, { allowsEndpoint })
    for (const refused of [job, check]) await assert.rejects(refused(), { code: 'key_not_allowed' })
    assert.deepEqual(asked, ['/chat/completions', '/chat/completions'])
    const other = stage(async () => {}, { allowsEndpoint: () => true, allowsModel: () => false })
    await assert.rejects(other.check(), { code: 'model_access_denied' })
  })
})

describe('the taker of an answer', () => {
  const open = (stop?: AbortSignal, memory = byteBudget(1000)) => lineReply('request', 'ws', memory, stop)

  it('keeps what it is sent, as text', () => {
    const reply = open()
    assert.equal(reply.answer(), undefined)
    reply.sendAnswer('application/json', [Buffer.from('é').subarray(0, 1), Buffer.from('é').subarray(1)], {})
    assert.equal(reply.answer(), 'é')
    assert.deepEqual([textOf('a'), textOf(Buffer.from('b'))], ['a', 'b'])
    assert.deepEqual([reply.requestId, reply.owner], ['request', 'ws'])
  })

  it('is not for streams', () => {
    const { openAnswer, openStream, write, onDrain, end } = open()
    for (const call of [openAnswer, openStream, write, onDrain, end]) assert.throws(call as () => void, /not streamed/)
  })

  it('holds the memory of the request and of its answer, within the share of its workspace, until it is released', () => {
    const memory = byteBudget(1000)
    const reply = open(undefined, memory)
    reply.holdRequest(200)
    reply.holdAnswer(300)
    assert.equal(memory.held(), 500)
    for (const hold of [reply.holdRequest, reply.holdAnswer])
      assert.throws(() => hold(301), { code: 'service_unavailable' })
    reply.release()
    assert.equal(memory.held(), 0)
  })

  it('is cut off by a stop while it waits, and after that once it waits again', () => {
    const waiting = new AbortController()
    const first = open(waiting.signal)
    assert.deepEqual([first.isGone, first.isCut], [false, false])
    waiting.abort()
    assert.deepEqual([first.isGone, first.isCut], [true, true])
    const running = new AbortController()
    const second = open(running.signal)
    second.setWaiting(false)
    running.abort()
    assert.equal(second.isGone, false)
    second.setWaiting(true)
    assert.equal(second.isGone, true)
    const over = new AbortController()
    const third = open(over.signal)
    third.setWaiting(true)
    assert.equal(third.isGone, false)
    third.release()
    over.abort()
    assert.equal(third.isGone, false, 'it has ended before')
  })

  it('calls each listener once when it is cut off, except those that were removed', () => {
    const reply = open()
    const called: string[] = []
    reply.onGone(() => called.push('one'))
    const remove = reply.onGone(() => called.push('removed'))
    reply.onGone(() => called.push('two'))
    remove()
    reply.cut()
    reply.cut()
    assert.deepEqual(called, ['one', 'two'])
    reply.onGone(() => called.push('late'))
    assert.deepEqual(called, ['one', 'two', 'late'])
  })
})

describe('a line of a result file', () => {
  const line = { batchId: 'batch_1', line: 7, customId: 'a"b' }

  it('has the answer as it is, on one line', () => {
    const text = answeredLine(line, { status: 200, requestId: 'r', body: '{\n"a":\r\n1}' })
    assert.equal(
      text,
      String.raw`{"id":"batch_req_1_7","custom_id":"a\"b","response":{"status_code":200,"request_id":"r","body":{ "a":  1}},"error":null}`,
    )
  })

  it('without an answer says why, and so does the list of failures', () => {
    const error = { code: 'batch_expired', message: 'too late' }
    const text = unansweredLine(line, error)
    assert.deepEqual(JSON.parse(text), { id: 'batch_req_1_7', custom_id: 'a"b', response: null, error })
    assert.deepEqual(failureKind({ code: 'x', line: 7, body: text }, 3), {
      code: 'x',
      count: 3,
      line: 7,
      customId: 'a"b',
      message: 'too late',
    })
    const answered = (body: string) =>
      failureKind({ code: 'x', line: 7, body: answeredLine(line, { status: 500, requestId: 'r', body }) }, 1)
    assert.equal(answered('{"error":{"message":"broken"}}').message, 'broken')
    assert.equal(answered('{"error":{}}').message, '')
    assert.equal(answered('{}').message, '')
  })
})

describe('the pace of a batch', () => {
  const batch = { state: 'in_progress', pause: null, counts: { total: 100, completed: 30, failed: 10 } } as const
  const unknown = { linesPerMinute: null, expectedEnd: null }

  it('is that of the lines that have ended since, and says when the last one ends', () => {
    assert.deepEqual(linePaceOf(batch, 20, 1_000_000, 1_060_000), { linesPerMinute: 20, expectedEnd: 1_240_000 })
    const overdone = { ...batch, counts: { total: 1, completed: 1, failed: 1 } }
    assert.equal(linePaceOf(overdone, 20, 0, 60_000).expectedEnd, 60_000)
  })

  it('is known from five lines and ten seconds on, while lines can run', () => {
    assert.equal(linePaceOf(batch, 5, 0, 10_000).linesPerMinute, 30)
    assert.deepEqual(linePaceOf(batch, 4, 0, 10_000), unknown)
    assert.deepEqual(linePaceOf(batch, 5, 0, 9999), unknown)
    assert.deepEqual(linePaceOf({ ...batch, state: 'finalizing' }, 5, 0, 10_000), unknown)
    const pause = { code: 'spend_limit_exceeded', message: 'spent', since: 0 }
    assert.deepEqual(linePaceOf({ ...batch, pause }, 5, 0, 10_000), unknown)
  })
})
