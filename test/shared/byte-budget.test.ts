import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { byteBudget } from '../../src/shared/byte-budget.ts'

fc.configureGlobal({ seed: 1 })

describe('a budget of bytes', () => {
  it('gives one owner no more than half, and all of them together no more than the whole', () => {
    const budget = byteBudget(100)
    const [one, two, three] = ['a', 'b', 'c'].map((owner) => budget.open(owner))
    assert.deepEqual([one?.hold(51), one?.hold(50), one?.hold(51)], ['share', undefined, 'share'])
    assert.deepEqual([two?.hold(40), three?.hold(11), three?.hold(10)], [undefined, 'budget', undefined])
    assert.equal(budget.held(), 100)
    one?.release()
    assert.equal(three?.hold(50), undefined)
    assert.equal(budget.held(), 90)
  })

  it('counts all holders of one owner together', () => {
    const budget = byteBudget(100)
    const [one, two] = [budget.open('a'), budget.open('a')]
    assert.equal(one.hold(30), undefined)
    assert.equal(two.hold(30), 'share')
    one.hold(10)
    assert.equal(two.hold(30), undefined)
  })

  it('counts what is already in memory, even beyond the limit, and then has no room for more', () => {
    const budget = byteBudget(100)
    const answer = budget.open('a')
    answer.keep(500)
    assert.equal(budget.held(), 500)
    assert.equal(budget.open('b').hold(1), 'budget')
    assert.equal(answer.hold(400), undefined, 'less is always allowed')
    answer.release()
    assert.equal(budget.open('b').hold(1), undefined)
  })

  it('is the sum of its holders, within its limits, whatever they do, and empty when all have released', () => {
    const steps = fc.array(fc.tuple(fc.nat(9), fc.nat(60)), { maxLength: 200 })
    fc.assert(
      fc.property(steps, (moves) => {
        const budget = byteBudget(100)
        const holders = Array.from({ length: 10 }, (_, index) => ({
          owner: `owner ${index % 4}`,
          bytes: budget.open(`owner ${index % 4}`),
          held: 0,
        }))
        for (const [index, bytes] of moves) {
          const holder = holders[index]!
          if (holder.bytes.hold(bytes) === undefined) holder.held = bytes
          const sums = Object.values(Object.groupBy(holders, ({ owner }) => owner)).map((of = []) =>
            of.reduce((sum, { held }) => sum + held, 0),
          )
          assert.ok(Math.max(...sums) <= 50)
          assert.equal(
            budget.held(),
            sums.reduce((sum, held) => sum + held, 0),
          )
          assert.ok(budget.held() <= 100)
        }
        for (const { bytes } of holders) bytes.release()
        assert.equal(budget.held(), 0)
      }),
    )
  })
})
