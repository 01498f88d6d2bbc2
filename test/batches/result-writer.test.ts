import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { BatchStore, WrittenResult } from '../../src/batches/batch-store.ts'
import { resultWriter } from '../../src/batches/result-writer.ts'
import type { Clock } from '../../src/shared/clock.ts'
import { turn } from '../support/hand-clock.ts'
import { within } from '../support/waiting.ts'

const clock = { now: () => 9 } as Clock
const resultOf = (line: number): WrittenResult => ({ line }) as WrittenResult

/** A writer whose transactions the test ends. */
function stage() {
  const groups: (readonly number[])[][] = []
  const ends: PromiseWithResolvers<readonly boolean[]>[] = []
  const writeResults: BatchStore['writeResults'] = (results, stored, at) => {
    assert.equal(at, 9)
    groups.push([results.map(({ line }) => line), stored.map(({ line }) => line)])
    const end = Promise.withResolvers<readonly boolean[]>()
    ends.push(end)
    return end.promise
  }
  return { groups, ends, writer: resultWriter({ writeResults }, clock) }
}

describe('results of lines', () => {
  it('are written in groups: while one transaction runs, the next one collects', async () => {
    const { groups, ends, writer } = stage()
    const first = writer.write(resultOf(1))
    const others = [writer.write(resultOf(2)), writer.complete(resultOf(3)), writer.write(resultOf(4))]
    assert.deepEqual(groups, [[[1], []]])
    ends[0]?.resolve([true])
    assert.equal(await first, true)
    await turn()
    assert.deepEqual(groups.slice(1), [[[2, 4], [3]]])
    ends[1]?.resolve([false, true])
    assert.deepEqual(await Promise.all(others), [false, undefined, true])
    const later = writer.write(resultOf(5))
    assert.deepEqual(groups[2], [[5], []])
    ends[2]?.resolve([])
    assert.equal(await later, false)
  })

  it('have at most 100 in a group', async () => {
    const { groups, ends, writer } = stage()
    const all = Array.from({ length: 202 }, (_, line) => writer.write(resultOf(line)))
    for (let group = 0; group < 4; group++) {
      ends[group]?.resolve(Array<boolean>(100).fill(true))
      await turn()
    }
    assert.deepEqual(
      groups.map(([results]) => results?.length),
      [1, 100, 100, 1],
    )
    assert.ok((await Promise.all(all)).every((isWritten) => isWritten))
  })

  it('fail together if their transaction fails, and the next ones do not', async () => {
    const { ends, writer } = stage()
    const first = assert.rejects(writer.write(resultOf(1)), /away/)
    const second = [writer.complete(resultOf(2)), writer.write(resultOf(3)), writer.write(resultOf(4))].map((write) =>
      assert.rejects(write, /gone/),
    )
    ends[0]?.reject(new Error('away'))
    await turn()
    ends[1]?.reject(new Error('gone'))
    await within(10_000, 'all of them fail', Promise.all([first, ...second]))
    const third = writer.write(resultOf(5))
    ends[2]?.resolve([true])
    assert.equal(await third, true)
  })
})
