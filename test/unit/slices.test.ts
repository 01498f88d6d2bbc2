import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { CallerLeft } from '../../src/core/errors.ts'
import { resultOf, type SlicedWork, type WaitingWork } from '../../src/core/sliced-work.ts'
import { inSlices } from '../../src/http/slices.ts'

/** Uses the processor for this long. */
function busy(ms: number): void {
  const until = performance.now() + ms
  while (performance.now() < until);
}

function* steps(count: number, ms: number, note: () => void = () => {}): SlicedWork<number> {
  for (let step = 0; step < count; step++) {
    busy(ms)
    note()
    yield
  }
  return count
}

const client = (owner: string) => ({ owner, isGone: false })

describe('work in slices', () => {
  it('is done at once if it is short, and returns its result', () => {
    assert.equal(inSlices(client('a'), steps(3, 0)), 3)
  })

  it('may wait for something between two steps', async () => {
    function* work(): WaitingWork<string> {
      yield
      const word = yield* resultOf(new Promise<string>((resolve) => setTimeout(resolve, 5, 'done')))
      yield
      return word
    }
    assert.equal(await inSlices(client('a'), work()), 'done')
  })

  it('ends when what it waits for fails', async () => {
    function* work(): WaitingWork<void> {
      yield* resultOf(Promise.reject(new Error('no')))
    }
    await assert.rejects(async () => inSlices(client('a'), work()), /^Error: no$/)
  })

  it('passes errors on', async () => {
    function* work(): SlicedWork<void> {
      busy(20)
      yield
      throw new Error('no')
    }
    await assert.rejects(async () => inSlices(client('a'), work()), /^Error: no$/)
  })

  it('runs in one slice for each turn of the event loop, however much there is to do', async () => {
    const slices: number[] = []
    let inThisTurn = new Set<number>()
    let isOver = false
    const watch = (): void => {
      slices.push(inThisTurn.size)
      inThisTurn = new Set()
      if (!isOver) setImmediate(watch)
    }
    const all = Array.from({ length: 10 }, (_, index) =>
      Promise.resolve(
        inSlices(
          client(`owner ${index % 3}`),
          steps(40, 1, () => inThisTurn.add(index)),
        ),
      ),
    )
    // Each has had its first slice already.
    inThisTurn = new Set()
    setImmediate(watch)
    await Promise.all(all)
    isOver = true
    assert.equal(Math.max(...slices), 1)
    assert.ok(slices.length > 20, `${slices.length} turns`)
  })

  it('lets owners take turns, and finishes the oldest work of an owner first', async () => {
    const ended: string[] = []
    const run = async (owner: string, name: string): Promise<void> => {
      await inSlices(client(owner), steps(40, 1))
      ended.push(name)
    }
    await Promise.all([run('a', 'a1'), run('a', 'a2'), run('a', 'a3'), run('b', 'b1')])
    assert.ok(ended.indexOf('b1') < ended.indexOf('a2'), ended.join())
    assert.deepEqual(
      ended.filter((name) => name.startsWith('a')),
      ['a1', 'a2', 'a3'],
    )
  })

  it('stops when its caller goes away', async () => {
    const caller = { owner: 'a', isGone: false }
    let done = 0
    const result = inSlices(
      caller,
      steps(1000, 1, () => done++),
    )
    caller.isGone = true
    await assert.rejects(async () => result, CallerLeft)
    assert.ok(done < 1000)
  })
})
