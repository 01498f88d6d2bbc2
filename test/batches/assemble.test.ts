import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { describe, it } from 'node:test'
import { assemble, type AssemblyParts } from '../../src/batches/assemble.ts'
import type { BatchEnding, BatchStore, ClaimedBatch, LineRange, LineResult } from '../../src/batches/batch-store.ts'
import { ApiError } from '../../src/shared/errors.ts'
import { chatLine } from '../support/batch-lines.ts'

/** The files with the results of a batch, from results that the test gives. */

const NOW = 1000
const LINES_IN_RANGE = 2
const input = Buffer.from([1, 2, 3, 4].map((line) => `${JSON.stringify(chatLine(`c${line}`))}\n`).join(''))
const half = input.length / 2

type Result = LineResult & { readonly body: string }
const result = (line: number, changes: Partial<Result> = {}): Result => ({
  line,
  state: 'completed',
  requestId: `r-${line}`,
  owner: '',
  errorCode: null,
  body: `{"line":${line}}`,
  ...changes,
})
const failed = (line: number, errorCode: string | null): Result =>
  result(line, {
    state: 'failed',
    errorCode,
    body: JSON.stringify({ custom_id: `c${line}`, response: null, error: { message: `${errorCode} ${line}` } }),
  })

interface Given {
  readonly results: readonly Result[]
  readonly ending?: BatchEnding | null
  readonly parts?: Partial<AssemblyParts>
  readonly stop?: AbortSignal
  /** Whether the input file is. */
  readonly isGone?: boolean
  /** How many ranges of two lines it has. */
  readonly ranges?: number
}

/** Of a batch of four lines. */
async function assembled({ results, ending = 'completed', ranges = 2, isGone = false, parts, stop }: Given) {
  const seen = { reads: [] as string[], closed: 0, steps: [] as string[] }
  const stored: Record<string, string> = {}
  const all = Array.from({ length: ranges }, (_, index): LineRange => ({
    firstLine: 1 + index * LINES_IN_RANGE,
    lines: LINES_IN_RANGE,
    byteStart: index * half,
    byteEnd: (index + 1) * half,
  }))
  const store: Partial<BatchStore> = {
    closeRanges: async ({ id }) => void seen.steps.push(`close ${id}`),
    ranges: async (_id, after, limit) => {
      seen.steps.push(`ranges after ${after}`)
      return all.filter(({ firstLine }) => firstLine > after).slice(0, limit)
    },
    results: async (_id, { firstLine, lines }) =>
      results.filter(({ line }) => line >= firstLine && line < firstLine + lines),
  }
  const batch = {
    id: 'batch_1',
    workspaceId: 'ws_1',
    endpoint: '/v1/chat/completions',
    inputFileId: 'in',
    ending,
    counts: { total: 4, completed: 0, failed: 0 },
  } as ClaimedBatch
  const end = assemble(
    {
      store,
      clock: { now: () => NOW },
      running: new Set(),
      rowsOf: async () => [],
      isDelivered: () => true,
      spool: {
        async open(owner: string) {
          assert.equal(owner, 'ws_1')
          const pieces: Buffer[] = []
          return {
            pieces,
            get length() {
              return Buffer.concat(pieces).length
            },
            append: async (added: readonly Buffer[]) => void pieces.push(...added),
            close: async () => void seen.closed++,
          }
        },
      },
      files: {
        async file() {
          if (isGone) throw new ApiError('not_found', 'gone')
        },
        async read(_file: object, start: number, until: number) {
          seen.reads.push(`${start / half}-${until / half}`)
          return Readable.from([input.subarray(start, until)])
        },
        async store({ id, filename }: { id: string; filename: string }, { pieces }: { pieces: Buffer[] }) {
          stored[filename] = Buffer.concat(pieces).toString()
          return { id }
        },
      },
      ...parts,
    } as unknown as AssemblyParts,
    batch,
    stop ?? new AbortController().signal,
  )
  return { end, seen, stored }
}

describe('the results of a batch', () => {
  it('are in two files in the order of the lines, and counted, without another look at the input', async () => {
    const results = [result(1), failed(2, 'x'), failed(3, null), result(4)]
    const { end, seen, stored } = await assembled({ results })
    const idOf = (kind: string) => `file-${createHash('sha256').update(`batch_1 ${kind}`).digest('hex').slice(0, 24)}`
    assert.deepEqual(await end, {
      state: 'completed',
      counts: { completed: 2, failed: 2 },
      errors: null,
      failures: [
        { code: 'x', count: 1, line: 2, customId: 'c2', message: 'x 2' },
        { code: 'unknown', count: 1, line: 3, customId: 'c3', message: 'null 3' },
      ],
      output: { id: idOf('output') },
      error: { id: idOf('error') },
      at: NOW,
    })
    assert.deepEqual(stored, {
      'batch_1_output.jsonl': '{"line":1}\n{"line":4}\n',
      'batch_1_error.jsonl': `${results[1]?.body}\n${results[2]?.body}\n`,
    })
    assert.deepEqual([seen.reads, seen.closed], [[], 2])
    assert.deepEqual(seen.steps, ['close batch_1', 'ranges after 0', 'ranges after 3'])
  })

  it('list the most frequent failures first, each with its first line', async () => {
    const results = [failed(1, 'a'), failed(2, 'b'), failed(3, 'b'), result(4)]
    const { failures } = await (await assembled({ results })).end
    assert.deepEqual(
      failures.map(({ code, count, line }) => [code, count, line]),
      [
        ['b', 2, 2],
        ['a', 1, 1],
      ],
    )
  })

  it('are in no file where there are none', async () => {
    const { end, stored } = await assembled({ results: [1, 2, 3, 4].map((line) => result(line)) })
    const { output, error } = await end
    assert.deepEqual([output !== undefined, error, Object.keys(stored)], [true, undefined, ['batch_1_output.jsonl']])
  })

  for (const [ending, code] of [
    ['completed', 'internal_error'],
    ['failed', 'batch_failed'],
    ['expired', 'batch_expired'],
    ['cancelled', 'batch_cancelled'],
    [null, 'batch_failed'],
  ] as const) {
    it(`say why a line has none: ${code} if the batch is ${ending ?? 'without an ending'}`, async () => {
      const { end, seen, stored } = await assembled({ ending, results: [result(1), result(2), result(4)] })
      const { state, counts, errors, failures } = await end
      assert.deepEqual([state, counts, errors], [ending ?? 'failed', { completed: 3, failed: 1 }, null])
      assert.deepEqual(
        failures.map((it) => [it.code, it.line, it.customId]),
        [[code, 3, 'c3']],
      )
      assert.deepEqual(seen.reads, ['1-2'], 'only the range with the line is read')
      const line = JSON.parse(stored['batch_1_error.jsonl'] ?? '') as object
      assert.partialDeepStrictEqual(line, { id: 'batch_req_1_3', custom_id: 'c3', response: null, error: { code } })
      assert.equal(stored['batch_1_output.jsonl'], '{"line":1}\n{"line":2}\n{"line":4}\n')
    })
  }

  it('count a kept answer only if it was billed', async () => {
    const results = [result(1, { state: 'stored' }), result(2, { state: 'stored' }), result(3), result(4)]
    const rowsOf = async (ids: readonly string[]) => {
      assert.deepEqual(ids, ['r-1', 'r-2'])
      return [{ requestId: 'r-2', outcome: 'completed' }] as never
    }
    const { end, stored } = await assembled({ ending: 'cancelled', results, parts: { rowsOf } })
    assert.deepEqual((await end).counts, { completed: 3, failed: 1 })
    assert.equal(stored['batch_1_output.jsonl'], '{"line":2}\n{"line":3}\n{"line":4}\n')
  })

  it('are those that have ended, in order and with an error, if the input file is gone', async () => {
    const isGone = true
    const results = [result(1, { state: 'stored' }), result(2), failed(3, 'x')]
    const { end, stored } = await assembled({ ending: 'expired', results, isGone, parts: { isDelivered: () => false } })
    const { counts, errors } = await end
    assert.deepEqual(
      [counts, errors?.count, errors?.data.map(({ code, param }) => [code, param])],
      [{ completed: 2, failed: 1 }, 1, [['not_found', 'input_file_id']]],
    )
    assert.equal(stored['batch_1_output.jsonl'], '{"line":1}\n{"line":2}\n')
  })

  it('are read fifty ranges at a time', async () => {
    const results = Array.from({ length: 102 }, (_, index) => result(index + 1))
    const { end, seen } = await assembled({ results, ranges: 51 })
    assert.equal((await end).counts.completed, 102)
    assert.deepEqual(seen.steps.slice(1), ['ranges after 0', 'ranges after 99', 'ranges after 101'])
  })

  it('are left, and nothing is stored, when the service stops', async () => {
    const { end, seen, stored } = await assembled({
      results: [result(1), result(2), result(3), result(4)],
      stop: AbortSignal.abort(new Error('the service stops')),
    })
    await assert.rejects(end, /the service stops/)
    assert.deepEqual([stored, seen.closed], [{}, 2])
  })
})
