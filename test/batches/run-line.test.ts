import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Batch, WrittenResult } from '../../src/batches/batch-store.ts'
import type { LineReply } from '../../src/batches/line-reply.ts'
import { runLine, type LineParts } from '../../src/batches/run-line.ts'
import type { Job } from '../../src/engines/job.ts'
import type { Reply } from '../../src/server/reply.ts'
import { byteBudget } from '../../src/shared/byte-budget.ts'
import { ApiError, CallerLeft } from '../../src/shared/errors.ts'
import type { Caller } from '../../src/workspaces/workspace.ts'
import { chatLine } from '../support/batch-lines.ts'

/** One line, with a scripted engine and writer. Pauses are recorded, and pass at once. */

const KEPT = '{"ok":true}'
const caller = { workspace: { id: 'ws_1' }, keyId: 'key' } as Caller
const id = (attempt: number): string => `batch_1-7-3-${attempt}`
const bodyOf = (requestId: string, body: string, status = 200): string =>
  `{"id":"batch_req_1_7","custom_id":"a","response":{"status_code":${status},"request_id":"${requestId}","body":${body}},"error":null}`

function stage(changes: Partial<LineParts> = {}) {
  const seen = {
    written: [] as WrittenResult[],
    completed: [] as WrittenResult[],
    failures: [] as string[],
    pauses: [] as number[],
    requests: [] as string[],
  }
  const memory = byteBudget(1e6)
  const parts: LineParts = {
    endpoints: {
      urls: [],
      check: async () => {},
      async jobOf(_request, _caller, client) {
        client.holdRequest(1000)
        const answer = { kind: 'whole', read: async () => ({ render: (usage: unknown) => `${KEPT}${String(usage)}` }) }
        return { answer } as unknown as Job
      },
      errorBody: (url, { code }, requestId) => ({ url, code, requestId }),
    },
    writer: {
      write: async (result) => (seen.written.push(result), true),
      complete: async (result) => void seen.completed.push(result),
    },
    memory,
    owner: 'me',
    pipeline: answers(KEPT),
    usageOf: () => '' as never,
    sleep: async (ms, signal) => {
      signal.throwIfAborted()
      seen.pauses.push(ms)
    },
    running: new Set(),
    failed: ({ message }) => void seen.failures.push(message),
    ...changes,
  }
  const stop = new AbortController()
  const replies = new Set<LineReply>()
  const batch = { id: 'batch_1', workspaceId: 'ws_1', endpoint: '/v1/chat/completions' } as Batch
  const range = { batchId: 'batch_1', claims: 3, firstLine: 1, lines: 9, byteStart: 0, byteEnd: 9 }
  const bytes = Buffer.from(JSON.stringify({ ...chatLine('a'), custom_id: 'a' }))
  async function run() {
    const end = await runLine(parts, { batch, range, caller, number: 7, bytes, stop, replies })
    assert.deepEqual([replies.size, parts.running.size, memory.held()], [0, 0, 0], 'nothing is left of its attempts')
    return end
  }
  /** Fails with these errors, one after the other, and then answers. */
  function failing(...errors: readonly unknown[]): LineParts['pipeline'] {
    const left = [...errors]
    return async (job, by, reply) => {
      seen.requests.push(reply.requestId)
      assert.deepEqual([...parts.running], [reply.requestId])
      assert.equal(replies.size, 1)
      if (left.length > 0) throw left.shift()
      await answers(KEPT)(job, by, reply)
    }
  }
  return { seen, parts: parts as { -readonly [Key in keyof LineParts]: LineParts[Key] }, stop, run, failing, range }
}

/** The engine answers, and this is what the caller gets. */
function answers(body: string) {
  return async ({ answer }: Job, _caller: Caller, reply: Reply): Promise<void> => {
    assert.ok(answer.kind === 'whole')
    assert.ok(await answer.read([], {} as never, {} as never))
    reply.sendAnswer('application/json', body, {})
  }
}

describe('a line of a batch', () => {
  it('keeps its answer before its row is settled, and marks it as complete after that', async () => {
    const { seen, run, range } = stage()
    assert.equal(await run(), 'final')
    const kept = { range, line: 7, state: 'stored', requestId: id(1), owner: 'me', errorCode: null }
    assert.deepEqual(
      [seen.written, seen.completed],
      [[{ ...kept, body: bodyOf(id(1), KEPT) }], [{ ...kept, body: bodyOf(id(1), KEPT) }]],
    )
  })

  it('writes the answer anew if the spend limit had no room for all of it', async () => {
    const { seen, run, range } = stage({ pipeline: answers('{"cut":true}') })
    assert.equal(await run(), 'final')
    const final = { range, line: 7, state: 'completed', requestId: id(1), owner: 'me', errorCode: null }
    assert.deepEqual(seen.written.slice(1), [{ ...final, body: bodyOf(id(1), '{"cut":true}') }])
    assert.deepEqual(seen.completed, [])
  })

  it('is tried four times more when its engine fails, and then has failed', async () => {
    const { seen, parts, run, failing, range } = stage()
    const codes = ['upstream_error', 'upstream_timeout', 'internal_error', 'upstream_error', 'upstream_error'] as const
    parts.pipeline = failing(...codes.map((code) => new ApiError(code, code)))
    assert.equal(await run(), 'final')
    assert.deepEqual(seen.pauses, [1000, 5000, 20_000, 60_000])
    assert.deepEqual(seen.requests, [1, 2, 3, 4, 5].map(id))
    const error = JSON.stringify({ url: '/v1/chat/completions', code: 'upstream_error', requestId: id(5) })
    const failed = { range, line: 7, state: 'failed', requestId: id(5), owner: 'me', errorCode: 'upstream_error' }
    assert.deepEqual(seen.written, [{ ...failed, body: bodyOf(id(5), error, 502) }])
  })

  it('is tried as long as there is no capacity, and an engine that fails meanwhile has its own attempts', async () => {
    const { seen, parts, run, failing } = stage()
    const busy = new ApiError('service_unavailable', 'busy')
    const broken = new ApiError('upstream_error', 'broken')
    parts.pipeline = failing(busy, busy, broken, busy, busy, busy, broken, busy)
    assert.equal(await run(), 'final')
    assert.deepEqual(seen.pauses, [500, 2000, 1000, 5000, 10_000, 10_000, 5000, 10_000])
    assert.equal(seen.written[0]?.state, 'stored')
  })

  it('has failed at once by an error that no waiting helps against', async () => {
    const { seen, parts, run, failing } = stage()
    parts.pipeline = failing(new ApiError('invalid_value', 'wrong'))
    assert.equal(await run(), 'final')
    assert.deepEqual([seen.pauses, seen.written.map(({ errorCode }) => errorCode)], [[], ['invalid_value']])
  })

  it('is left, with the error, when the spend limit is reached', async () => {
    const { seen, parts, run, failing } = stage()
    const error = new ApiError('spend_limit_exceeded', 'spent')
    parts.pipeline = failing(error)
    assert.equal(await run(), error)
    assert.deepEqual([seen.written, seen.failures], [[], []])
  })

  it('is tried again after an unexpected error', async () => {
    const { seen, parts, run, failing } = stage()
    parts.pipeline = failing(new TypeError('undefined is not a function'))
    assert.equal(await run(), 'final')
    assert.deepEqual([seen.pauses, seen.written[0]?.requestId], [[1000], id(2)])
  })

  it('is left when its range has another owner: no other line of the range begins', async () => {
    const { seen, parts, stop, run } = stage()
    parts.writer = { ...parts.writer, write: async () => false }
    assert.equal(await run(), 'left')
    assert.match(String(stop.signal.reason), /the range was claimed again/)
    assert.deepEqual([seen.completed, seen.failures], [[], []])
  })

  it('is written when the database is back, and is not run again for that', async () => {
    const { seen, parts, run } = stage()
    const { write, complete } = parts.writer
    const afterFailures = <Args extends readonly unknown[], Done>(call: (...args: Args) => Promise<Done>) => {
      let failures = 2
      return async (...args: Args): Promise<Done> => {
        if (failures-- > 0) throw new Error('away')
        return call(...args)
      }
    }
    parts.writer = { write: afterFailures(write), complete: afterFailures(complete) }
    assert.equal(await run(), 'final')
    assert.deepEqual(seen.pauses, [1000, 1000, 1000, 1000])
    assert.deepEqual([seen.failures.length, seen.written.length, seen.completed.length], [4, 1, 1])
  })

  it('is left, and nothing is reported, when the service stops or cuts it off', async () => {
    const stopped = stage()
    let attempts = 0
    stopped.parts.pipeline = async () => {
      attempts++
      stopped.stop.abort(new Error('the service stops'))
      throw new ApiError('upstream_error', 'cut')
    }
    assert.equal(await stopped.run(), 'left')
    assert.equal(await stopped.run(), 'left')
    assert.equal(attempts, 1, 'it does not begin any more')
    const cut = stage()
    cut.parts.pipeline = cut.failing(new CallerLeft())
    assert.equal(await cut.run(), 'left')
    for (const { seen } of [stopped, cut]) assert.deepEqual([seen.written, seen.failures, seen.pauses], [[], [], []])
  })

  it('reports an answer that is streamed, which no line has', async () => {
    const { seen, parts, run } = stage()
    parts.endpoints = { ...parts.endpoints, jobOf: async () => ({ answer: { kind: 'stream' } }) as unknown as Job }
    assert.equal(await run(), 'final')
    assert.equal(seen.written[0]?.errorCode, 'internal_error')
  })
})
