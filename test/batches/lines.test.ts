import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { describe, it } from 'node:test'
import { fileLines } from '../../src/batches/lines.ts'

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
    assert.deepEqual(await lines('one\n2'), ['one', '2'])
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
