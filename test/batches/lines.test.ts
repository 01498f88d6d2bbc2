import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { describe, it } from 'node:test'
import { fileLines, type FileLine } from '../../src/batches/lines.ts'
import { lineReply } from '../../src/batches/line-reply.ts'
import { validateLines } from '../../src/batches/validate.ts'
import type { LineRange } from '../../src/batches/batch-store.ts'
import { byteBudget } from '../../src/shared/byte-budget.ts'
import type { Caller } from '../../src/workspaces/workspace.ts'
import { chatLine } from '../support/batches.ts'

const FROM = { number: 1, start: 0 }

describe('the lines of a file', () => {
  it('are the same however the file is cut into chunks', async () => {
    const text = 'one\n\ntwo with é\r\n  \nthree'
    const bytes = Buffer.from(text)
    for (let size = 1; size <= bytes.length; size++) {
      const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
        bytes.subarray(index * size, (index + 1) * size),
      )
      const lines = await Array.fromAsync(fileLines(Readable.from(chunks), FROM, 100))
      assert.deepEqual(
        lines.map((it) => [it.number, bytes.toString('utf8', it.start, it.end), it.bytes?.toString()]),
        [
          [1, 'one\n', 'one'],
          [3, 'two with é\r\n', 'two with é\r'],
          [5, 'three', 'three'],
        ],
      )
    }
  })

  it('begin after a byte order mark, which only the start of the file may have', async () => {
    const lines = async (text: string, start = 0): Promise<readonly (string | undefined)[]> => {
      const found = await Array.fromAsync(fileLines(Readable.from([Buffer.from(text)]), { number: 1, start }, 100))
      return found.map(({ bytes }) => bytes?.toString())
    }
    assert.deepEqual(await lines('\uFEFFone\n\uFEFFtwo'), ['one', '\uFEFFtwo'])
    assert.deepEqual(await lines('\uFEFF\r\none'), ['one'])
    assert.deepEqual(await lines('\uFEFFone', 3), ['\uFEFFone'])
  })

  it('that are too long have no bytes', async () => {
    const lines = await Array.fromAsync(fileLines(Readable.from([Buffer.from('12345\n123456\n')]), FROM, 5))
    assert.deepEqual(
      lines.map((it) => it.bytes?.toString()),
      ['12345', undefined],
    )
  })

  it('are read as they are used: memory does not grow with the file', async () => {
    const line = Buffer.from(`${'x'.repeat(65_535)}\n`)
    const total = 2000
    let read = 0
    const source = new Readable({
      highWaterMark: line.length,
      read() {
        this.push(++read > total ? null : line)
      },
    })
    let used = 0
    let most = 0
    for await (const { bytes } of fileLines(source, FROM, 100_000)) {
      used++
      most = Math.max(most, read - used)
      assert.equal(bytes?.length, 65_535)
    }
    assert.equal(used, total)
    assert.ok(most <= 4, `${most} lines were in memory`)
  })
})

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
    await validateLines(file(lines), '/v1/chat/completions', { ...parts, maxInFlight: 81, found })
    assert.deepEqual(
      ranges.map((it) => it.lines),
      [21, 21, 21, 7],
    )
  })

  it('refuses too many lines, and none', async () => {
    const found = async (): Promise<void> => {}
    const many = Array.from({ length: 101 }, (_, index) => chatLine(index))
    const checked = await validateLines(file(many), '/v1/chat/completions', { ...parts, found })
    assert.ok('errors' in checked && checked.errors.data[0]?.code === 'request_too_large')
    assert.equal(checked.errors.data[0].line, 101)
    const empty = await validateLines(file([]), '/v1/chat/completions', { ...parts, found })
    assert.ok('errors' in empty)
  })
})

describe('a line whose range stops', () => {
  it('gives up while it waits for its turn, and goes on while an engine has it', () => {
    for (const isWaiting of [true, false]) {
      const stop = new AbortController()
      const reply = lineReply('request', 'ws', byteBudget(1e9), stop.signal)
      let hasLeft = false
      reply.onGone(() => void (hasLeft = true))
      if (!isWaiting) reply.setWaiting(false)
      stop.abort()
      assert.deepEqual([reply.isGone, hasLeft], [isWaiting, isWaiting])
      // A line that gave way to an online request waits again.
      reply.setWaiting(true)
      assert.equal(reply.isGone, true)
    }
  })
})
