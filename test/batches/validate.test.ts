import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { LineRange } from '../../src/batches/batch-store.ts'
import type { FileLine } from '../../src/batches/lines.ts'
import { validateLines } from '../../src/batches/validate.ts'
import { byteBudget } from '../../src/shared/byte-budget.ts'
import { ApiError } from '../../src/shared/errors.ts'
import type { Caller } from '../../src/workspaces/workspace.ts'
import { chatLine } from '../support/batch-lines.ts'

describe('the check of a file', () => {
  const parts = {
    endpoints: { urls: [], check: async () => {}, jobOf: () => assert.fail(), errorBody: () => ({}) },
    caller: { workspace: { id: 'ws' }, keyId: 'key' } as Caller,
    memory: byteBudget(1e9),
    maxLines: 100,
    maxLineBytes: 3_000_000,
    maxInFlight: 1000,
    sleep: async () => {},
  }

  async function* file(lines: readonly object[], bytes = 10): AsyncGenerator<FileLine> {
    for (const [index, line] of lines.entries()) {
      yield {
        number: index + 1,
        start: index * bytes,
        end: (index + 1) * bytes,
        bytes: Buffer.from(JSON.stringify(line)),
      }
    }
  }

  it('finds ranges of few lines and few bytes that cover the file', async () => {
    const ranges: LineRange[] = []
    const found = async (range: LineRange): Promise<void> => void ranges.push(range)
    const lines = Array.from({ length: 70 }, (_, index) => chatLine(index))
    const small = await validateLines(file(lines), '/v1/chat/completions', { ...parts, found })
    assert.deepEqual(small, { lines: 70 })
    assert.deepEqual(
      ranges.map((it) => [it.firstLine, it.lines, it.byteStart, it.byteEnd]),
      [
        [1, 32, 0, 320],
        [33, 32, 320, 640],
        [65, 6, 640, 700],
      ],
    )
    ranges.length = 0
    await validateLines(file(lines.slice(0, 3), 2 ** 20), '/v1/chat/completions', { ...parts, found })
    assert.deepEqual(
      ranges.map((it) => it.lines),
      [1, 1, 1],
    )
    ranges.length = 0
    await validateLines(file(lines.slice(0, 4), 2 ** 19), '/v1/chat/completions', { ...parts, found })
    assert.deepEqual(
      ranges.map((it) => it.lines),
      [2, 2],
    )
    ranges.length = 0
    await validateLines(file(lines), '/v1/chat/completions', { ...parts, maxInFlight: 81, found })
    assert.deepEqual(
      ranges.map((it) => it.lines),
      [21, 21, 21, 7],
    )
  })

  it('names the line, the field and the mistake of every bad line', async () => {
    const tooLong = { number: 9, start: 80, end: 90, bytes: undefined }
    async function* lines(): AsyncGenerator<FileLine> {
      const good = chatLine('a')
      yield* file([good, good, {}, { ...good, custom_id: 'wrong body' }, { ...good, custom_id: 'no such model' }])
      yield tooLong
    }
    const memory = byteBudget(1e9)
    const checked = await validateLines(lines(), '/v1/chat/completions', {
      ...parts,
      memory,
      endpoints: {
        ...parts.endpoints,
        async check({ customId, body }, _caller, client) {
          client.holdRequest(body.length)
          if (customId === 'wrong body') throw new ApiError('invalid_value', 'too hot', { param: 'temperature' })
          if (customId === 'no such model') throw new ApiError('invalid_json', 'broken')
        },
      },
      async found() {
        assert.fail('a range was found that has a mistake')
      },
    })
    assert.ok('errors' in checked)
    assert.deepEqual(
      checked.errors.data.map(({ line, code, param }) => [line, code, param]),
      [
        [2, 'invalid_value', 'custom_id'],
        [3, 'missing_required_parameter', 'custom_id'],
        [4, 'invalid_value', 'body.temperature'],
        [5, 'invalid_json', null],
        [9, 'request_too_large', null],
      ],
    )
    assert.equal(checked.errors.count, 5)
    assert.match(checked.errors.data[4]?.message ?? '', /at most 3000000 bytes/)
    assert.equal(memory.held(), 0)
  })

  it('finds no range after a mistake', async () => {
    const lines = [{}, ...Array.from({ length: 40 }, (_, index) => chatLine(index))]
    const found = async (): Promise<void> => assert.fail('the batch will not run')
    const checked = await validateLines(file(lines), '/v1/chat/completions', { ...parts, found })
    assert.ok('errors' in checked && checked.errors.count === 1)
  })

  it('tells ids apart that differ at their end', async () => {
    const ids = ['a', 'b'].map((end) => chatLine('x'.repeat(500) + end))
    assert.deepEqual(await validateLines(file(ids), '/v1/chat/completions', { ...parts, found: async () => {} }), {
      lines: 2,
    })
  })

  it('fails if it cannot check a line', async () => {
    const endpoints = {
      ...parts.endpoints,
      check: async () => assert.fail('a mistake of Weir'),
    }
    const checking = validateLines(file([chatLine('a')]), '/v1/chat/completions', {
      ...parts,
      endpoints,
      found: async () => {},
    })
    await assert.rejects(checking, /a mistake of Weir/)
  })

  it('lists the first 1000 mistakes, and counts the others', async () => {
    const found = async (): Promise<void> => assert.fail('there is a mistake before')
    const wrong = Array.from({ length: 1001 }, () => ({}))
    const checked = await validateLines(file(wrong), '/v1/chat/completions', { ...parts, maxLines: 2000, found })
    assert.ok('errors' in checked)
    assert.deepEqual([checked.errors.count, checked.errors.data.length], [1001, 1000])
  })

  it('waits for memory that other requests hold, and goes on', async () => {
    let isFull = true
    const pauses: number[] = []
    const checked = await validateLines(file([chatLine('a')]), '/v1/chat/completions', {
      ...parts,
      endpoints: {
        ...parts.endpoints,
        async check() {
          if (isFull) throw new ApiError('service_unavailable', 'full')
        },
      },
      async sleep(ms) {
        pauses.push(ms)
        isFull = false
      },
      found: async () => {},
    })
    assert.deepEqual([checked, pauses], [{ lines: 1 }, [100]])
  })

  it('refuses too many lines, and none', async () => {
    const found = async (): Promise<void> => {}
    const many = Array.from({ length: 101 }, (_, index) => chatLine(index))
    const most = await validateLines(file(many.slice(1)), '/v1/chat/completions', { ...parts, found })
    assert.deepEqual(most, { lines: 100 })
    const checked = await validateLines(file(many), '/v1/chat/completions', { ...parts, found })
    assert.ok('errors' in checked && checked.errors.data[0]?.code === 'request_too_large')
    assert.equal(checked.errors.data[0].line, 101)
    const empty = await validateLines(file([]), '/v1/chat/completions', { ...parts, found })
    assert.deepEqual(empty, {
      errors: { count: 1, data: [{ code: 'invalid_value', message: 'The file has no lines.', param: null, line: 1 }] },
    })
  })
})
