import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  BatchPlaces,
  batchLimitsOf,
  batchRoomOf,
  batchTokensOf,
  type BatchPlace,
} from '../../src/queue/batch-places.ts'
import { BatchQueue, type WaitingPlace } from '../../src/queue/batch-queue.ts'

/** The queue of batch places compared with a plain list, and what they may use. */

interface Place extends WaitingPlace<Place> {
  readonly id: number
}

describe('the queue of batch places', () => {
  it('gives workspaces their turn, each in the order of arrival, and finds the first that expires', () => {
    // A small generator of numbers, so that every run is the same.
    let seed = 1
    const random = (below: number): number => {
      seed = (seed * 48_271) % 2_147_483_647
      return seed % below
    }
    const queue = new BatchQueue<Place>()
    /** The turns in order, each with its places. */
    let turns: { readonly workspace: string; readonly places: Place[] }[] = []
    const all = (): readonly Place[] => turns.flatMap(({ places }) => places)
    const forget = (place: Place): void => {
      for (const { places } of turns) if (places.includes(place)) places.splice(places.indexOf(place), 1)
      turns = turns.filter(({ places }) => places.length > 0)
    }
    for (let id = 0; id < 3000; id += 1) {
      const what = random(10)
      const head = queue.head()
      if (what < 5 || !head) {
        const workspace = `ws ${random(5)}`
        const dueAtMs = random(4) === 0 ? Infinity : random(1000)
        const place: Place = { id, workspace, dueAtMs, dueIndex: -1, ahead: undefined, behind: undefined }
        queue.add(place)
        const turn = turns.find((it) => it.workspace === workspace)
        if (turn) turn.places.push(place)
        else turns.push({ workspace, places: [place] })
      } else if (what < 7) {
        queue.take(head)
        const [first, ...others] = turns
        first!.places.shift()
        turns = first!.places.length > 0 ? [...others, first!] : others
      } else {
        const places = all()
        const place = what === 7 ? queue.earliest() : places[random(places.length)]
        if (place) {
          queue.remove(place)
          forget(place)
        }
      }
      assert.equal(queue.head()?.id, turns[0]?.places[0]?.id)
      assert.equal(queue.depth, all().length)
      const due = all().map(({ dueAtMs }) => dueAtMs)
      assert.equal(queue.earliest()?.dueAtMs ?? Infinity, Math.min(Infinity, ...due))
    }
    for (let place = queue.earliest(); place; place = queue.earliest()) {
      queue.remove(place)
      forget(place)
    }
    assert.ok(all().length > 0 && all().every(({ dueAtMs }) => dueAtMs === Infinity))
    const [place] = all()
    queue.take(place!)
    const { depth } = queue
    queue.remove({ ...place!, workspace: 'unknown' })
    assert.equal(queue.depth, depth)
  })
})

describe('what batch places may use', () => {
  const lane = { tokenBudget: 1009, maxConcurrentRequests: 4, maxQueueDepth: 7 }

  it('has defaults: a place and a tenth of the budget stay free', () => {
    const usual = { reserveConcurrent: 1, reserveTokens: 100, maxShare: 1, preempt: true, maxQueueDepth: 7 }
    assert.deepEqual(batchLimitsOf(lane), usual)
    assert.equal(batchLimitsOf({ ...lane, maxConcurrentRequests: 1 }).reserveConcurrent, 0)
    const set = { reserveConcurrent: 0, reserveTokens: 0, maxShare: 0, preempt: false, maxQueueDepth: 0 }
    assert.deepEqual(batchLimitsOf({ ...lane, batch: set }), set)
    assert.deepEqual(batchRoomOf(lane), {
      ofBatch: { requests: 4, tokens: 1009 },
      ofLane: { requests: 3, tokens: 909 },
    })
    assert.equal(batchTokensOf(lane), 909)
  })

  it('is a share of the lane, rounded down', () => {
    const shared = { tokenBudget: 100, maxConcurrentRequests: 7, maxQueueDepth: 7, batch: { maxShare: 0.57 } }
    assert.deepEqual(batchRoomOf(shared).ofBatch, { requests: 3, tokens: 57 })
    assert.equal(batchTokensOf(shared), 57)
  })

  const place = (cost: number): BatchPlace<never> =>
    ({
      cost,
      mark: 'none',
      isCovered: false,
      workspace: 'ws',
      dueAtMs: Infinity,
      dueIndex: -1,
    }) as unknown as BatchPlace<never>

  it('is counted by place and by token, up to the last of them', () => {
    const limits = { ...lane, tokenBudget: 1000, batch: { maxShare: 0.5 } }
    const places = new BatchPlaces<never>(limits)
    const [first, second] = [place(200), place(300)] as unknown as readonly [never, never]
    places.charge(first)
    assert.deepEqual(places.status(), { inFlightRequests: 1, committedTokens: 200, queueDepth: 0 })
    assert.equal(places.hasRoomFor(second, 2, 600), true)
    assert.equal(places.hasRoomFor(second, 3, 600), false, 'one place stays free')
    assert.equal(places.hasRoomFor(second, 2, 601), false, 'and a tenth of the budget')
    assert.equal(places.hasRoomFor(place(301) as never, 2, 200), false, 'half of the budget is for batch places')
    places.charge(second)
    assert.equal(places.hasRoomFor(place(0) as never, 2, 500), false, 'and half of the places')
    places.release(first)
    assert.deepEqual(places.status(), { inFlightRequests: 1, committedTokens: 300, queueDepth: 0 })
  })

  it('is too little for a place that costs more than all of it, unless batch places are paused', () => {
    const tooLarge = (cost: number, batch: object) =>
      new BatchPlaces<never>({ ...lane, tokenBudget: 1000, batch }).isTooLarge(place(cost) as never)
    assert.deepEqual([tooLarge(900, {}), tooLarge(901, {})], [false, true])
    assert.deepEqual([tooLarge(1000, { maxShare: 0 }), tooLarge(1001, { maxShare: 0 })], [false, true])
    const changed = new BatchPlaces<never>(lane)
    changed.setLimits({ ...lane, tokenBudget: 2000, maxQueueDepth: 9 })
    assert.deepEqual([changed.limits.maxQueueDepth, changed.limits.reserveTokens], [9, 200])
    assert.deepEqual(
      [1800, 1801].map((cost) => changed.isTooLarge(place(cost) as never)),
      [false, true],
    )
    assert.equal(changed.hasRoomFor(place(1800) as never, 0, 0), true)
  })
})
