import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  ScheduledCall,
  usualRules,
  type Effect,
  type EngineSettings,
} from '../../../src/engines/on-demand/decisions.ts'
import { planRoom, type Evictable } from '../../../src/engines/on-demand/room.ts'
import { openScheduler } from '../../../src/engines/on-demand/scheduler.ts'

/** The rules of the scheduler one by one, at their edges. Their combinations are in test/simulation/on-demand. */

const gpu = (amount: number): ReadonlyMap<string, number> => new Map([['gpu', amount]])

function textOf(effect: Effect): string {
  const calls = 'calls' in effect ? ` ${effect.calls.length}` : ''
  return `${effect.kind} ${effect.engine}${calls}${'reason' in effect ? `: ${effect.reason}` : ''}`
}

/** Engines that take a device of 10 each, unless they say otherwise. */
function stage(engines: Readonly<Record<string, Partial<EngineSettings>>>) {
  const scheduler = openScheduler(gpu(10), usualRules)
  const calls = new Map<string, ScheduledCall[]>()
  const usual = { needs: gpu(10), needsAsleep: undefined, stopAfterIdleMs: Infinity, isPinned: false }
  for (const [name, settings] of Object.entries(engines)) scheduler.add(name, { ...usual, ...settings }, 0)
  const texts = (effects: readonly Effect[]): readonly string[] => effects.map(textOf)
  return {
    scheduler,
    calls,
    arrive(name: string, at: number): readonly string[] {
      const call = new ScheduledCall(name, at)
      calls.set(name, [...(calls.get(name) ?? []), call])
      return texts(scheduler.arrive(call, at))
    },
    /** The oldest call of the engine ends. */
    leave(name: string, at: number): readonly string[] {
      const call = calls.get(name)?.shift() ?? assert.fail('no call')
      const effects = texts(scheduler.leave(call, at))
      assert.equal(call.state, 'over')
      return effects
    },
    do: (
      event: 'ready' | 'asleep' | 'stuck' | 'start' | 'stop' | 'sleep' | 'remove',
      name: string,
      at: number,
    ): readonly string[] => texts(scheduler[event](name, at)),
    ended: (name: string, at: number, reason = 'it crashed') => texts(scheduler.ended(name, reason, at)),
    measured: (name: string, memory: number, at: number) => texts(scheduler.measured(name, gpu(memory), at)),
    pin: (name: string, isPinned: boolean, at: number) => texts(scheduler.pin(name, isPinned, at)),
    pass: (at: number) => texts(scheduler.pass(at)),
    state: (name: string) => scheduler.status(name)?.state,
  }
}

describe('an engine on demand', () => {
  it('starts with its first call, which goes to it once it is ready', () => {
    const { arrive, leave, scheduler, ...it } = stage({ a: {} })
    assert.deepEqual(arrive('a', 5), ['start a'])
    assert.deepEqual(arrive('a', 6), [])
    const starting = { sinceMs: 5, waiting: 2, running: 0, isPinned: false, held: gpu(10), problem: undefined }
    assert.deepEqual(scheduler.status('a'), { state: 'starting', ...starting })
    assert.deepEqual(it.do('ready', 'a', 100), ['open a 2'])
    assert.deepEqual(scheduler.status('a'), { ...starting, state: 'ready', sinceMs: 100, waiting: 0, running: 2 })
    assert.deepEqual(arrive('a', 101), ['open a 1'])
    assert.deepEqual(leave('a', 102), [])
    assert.equal(scheduler.status('a')?.running, 2)
    assert.equal(scheduler.nextMs(), Infinity)
  })

  it('starts no more for a call whose caller has left', () => {
    const { arrive, leave, scheduler, ...it } = stage({ a: {}, b: {} })
    arrive('a', 0)
    arrive('b', 1)
    assert.deepEqual(leave('b', 2), [])
    assert.equal(scheduler.status('b')?.waiting, 0)
    it.do('ready', 'a', 3)
    leave('a', 4)
    assert.deepEqual(it.pass(100_000), [])
  })

  it('ends when it has been idle for its time, counted from its last call', () => {
    const { arrive, leave, scheduler, ...it } = stage({ a: { stopAfterIdleMs: 1000 } })
    arrive('a', 0)
    it.do('ready', 'a', 100)
    leave('a', 200)
    assert.equal(scheduler.nextMs(), 1200)
    assert.deepEqual(it.pass(1199), [])
    assert.deepEqual(it.pass(1200), ['stop a'])
    assert.equal(it.state('a'), 'stopping')
    assert.deepEqual(scheduler.status('a')?.held, gpu(10), 'until its process is gone')
    assert.deepEqual(it.ended('a', 1300), [])
    assert.deepEqual(
      [it.state('a'), scheduler.status('a')?.problem, scheduler.status('a')?.held],
      ['stopped', undefined, new Map()],
    )
    assert.equal(scheduler.nextMs(), Infinity)
  })

  it('that was started by an operator has its idle time from when it is ready', () => {
    const { scheduler, ...it } = stage({ a: { stopAfterIdleMs: 1000 } })
    assert.deepEqual(it.do('start', 'a', 0), ['start a'])
    assert.deepEqual(it.pass(50_000), [])
    it.do('ready', 'a', 60_000)
    assert.equal(scheduler.nextMs(), 61_000)
    assert.deepEqual(it.do('start', 'a', 60_500), [], 'it runs already')
    assert.deepEqual(it.pass(61_000), ['stop a'])
  })

  it('refuses calls after a start that failed, for twice as long each time, up to a minute', () => {
    const { arrive, scheduler, ...it } = stage({ a: {} })
    let now = 0
    for (const pauseMs of [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]) {
      assert.deepEqual(arrive('a', now), ['start a'])
      assert.deepEqual(it.ended('a', now), ['refuse a 1: it crashed'])
      assert.deepEqual([it.state('a'), scheduler.status('a')?.problem], ['failed', 'it crashed'])
      assert.deepEqual(arrive('a', now + pauseMs - 1), ['refuse a 1: it crashed'])
      now += pauseMs
    }
  })

  it('starts for an operator without that pause', () => {
    const { arrive, ...it } = stage({ a: {} })
    arrive('a', 0)
    it.ended('a', 0)
    assert.deepEqual(it.do('start', 'a', 10), ['start a'])
  })

  for (const [healthyMs, pauseMs] of [
    [29_999, 4000],
    [30_000, 1000],
  ] as const) {
    it(`that crashes after ${healthyMs} ms starts again ${pauseMs} ms later, and its calls wait for that`, () => {
      const { arrive, scheduler, ...it } = stage({ a: {} })
      for (const at of [0, 1000]) {
        arrive('a', at)
        it.ended('a', at)
      }
      arrive('a', 3000)
      it.do('ready', 'a', 3000)
      const crashedAt = 3000 + healthyMs
      assert.deepEqual(it.ended('a', crashedAt), [])
      assert.deepEqual(arrive('a', crashedAt), [])
      assert.equal(scheduler.nextMs(), crashedAt + pauseMs)
      assert.deepEqual(it.pass(crashedAt + pauseMs - 1), [])
      assert.deepEqual(it.pass(crashedAt + pauseMs), ['start a'])
    })
  }

  it('is stopped by an operator at once while it starts, and else when its calls have ended', () => {
    const { arrive, leave, ...it } = stage({ a: {} })
    arrive('a', 0)
    assert.deepEqual(it.do('stop', 'a', 1), ['refuse a 1: an operator stopped it', 'stop a'])
    assert.deepEqual(it.do('stop', 'a', 2), [], 'it is stopping already')
    it.ended('a', 3)
    assert.deepEqual(it.do('stop', 'a', 4), [], 'it does not run')
    arrive('a', 5)
    it.do('ready', 'a', 6)
    leave('a', 6)
    arrive('a', 6)
    assert.deepEqual(it.do('stop', 'a', 7), [])
    assert.deepEqual(arrive('a', 8), [], 'it waits for the next run')
    assert.deepEqual(leave('a', 9), [])
  })

  it('takes calls again after an operator has stopped it', () => {
    const { arrive, leave, ...it } = stage({ a: {} })
    arrive('a', 0)
    it.do('ready', 'a', 1)
    it.do('stop', 'a', 2)
    assert.deepEqual(leave('a', 3), ['stop a'])
    assert.deepEqual(arrive('a', 4), [])
    assert.deepEqual(it.ended('a', 5), ['start a'])
    assert.deepEqual(it.do('ready', 'a', 6), ['open a 1'])
  })

  it('sleeps when an operator wants it and it can, and wakes up for a call', () => {
    const { arrive, leave, scheduler, ...it } = stage({ a: { needsAsleep: gpu(2) }, b: {} })
    arrive('a', 0)
    it.do('ready', 'a', 1)
    assert.deepEqual(it.do('sleep', 'a', 2), [])
    assert.deepEqual(arrive('a', 2), [])
    assert.deepEqual(leave('a', 3), ['sleep a'])
    assert.deepEqual(scheduler.status('a')?.held, gpu(10))
    assert.deepEqual(it.do('asleep', 'a', 4), ['wake a'], 'a call waits')
    assert.deepEqual(it.do('ready', 'a', 5), ['open a 1'])
    leave('a', 6)
    assert.deepEqual(it.do('sleep', 'a', 7), ['sleep a'])
    assert.deepEqual(it.do('asleep', 'a', 8), [])
    assert.deepEqual([it.state('a'), scheduler.status('a')?.held], ['asleep', gpu(2)])
    assert.deepEqual(it.do('sleep', 'a', 9), [])
  })

  it('that cannot sleep is not asked to', () => {
    const { arrive, leave, ...it } = stage({ a: {} })
    arrive('a', 0)
    it.do('ready', 'a', 1)
    leave('a', 2)
    assert.deepEqual(it.do('sleep', 'a', 3), [])
    assert.deepEqual(arrive('a', 4), ['open a 1'])
  })

  it('is stopped when it does not fall asleep or wake up, and not otherwise', () => {
    const { arrive, leave, ...it } = stage({ a: { needsAsleep: gpu(2) } })
    arrive('a', 0)
    assert.deepEqual(it.do('stuck', 'a', 0), [])
    it.do('ready', 'a', 1)
    leave('a', 2)
    assert.deepEqual(it.do('stuck', 'a', 2), [])
    it.do('sleep', 'a', 3)
    assert.deepEqual(it.do('stuck', 'a', 4), ['stop a'])
    it.ended('a', 5)
    arrive('a', 6)
    it.do('ready', 'a', 7)
    leave('a', 8)
    it.do('sleep', 'a', 9)
    it.do('asleep', 'a', 10)
    arrive('a', 11)
    assert.equal(it.state('a'), 'waking')
    assert.deepEqual(it.do('stuck', 'a', 12), ['stop a'])
  })

  it('that ends while it wakes up has failed to start, and one that ends asleep was healthy', () => {
    const { arrive, leave, scheduler, ...it } = stage({ a: { needsAsleep: gpu(2) } })
    const sleep = (at: number): void => {
      it.do('ready', 'a', at)
      leave('a', at)
      it.do('sleep', 'a', at)
      it.do('asleep', 'a', at)
    }
    arrive('a', 0)
    sleep(1)
    arrive('a', 2)
    assert.deepEqual(it.ended('a', 3), ['refuse a 1: it crashed'])
    it.do('start', 'a', 4)
    it.do('ready', 'a', 5)
    it.do('sleep', 'a', 5)
    it.do('asleep', 'a', 5)
    assert.deepEqual(it.ended('a', 6), [])
    arrive('a', 6)
    assert.equal(scheduler.nextMs(), 1006, 'the pause of a first failure')
  })

  it('that is removed ends with its calls, and is forgotten when its process is gone', () => {
    const { arrive, leave, scheduler, ...it } = stage({ a: {}, b: { needs: gpu(1) }, c: {} })
    arrive('a', 0)
    it.do('ready', 'a', 1)
    assert.deepEqual(arrive('c', 1), [])
    assert.deepEqual(it.do('remove', 'c', 1), ['refuse c 1: it is no longer in the catalog'])
    assert.equal(scheduler.status('c'), undefined)
    assert.deepEqual(it.do('remove', 'a', 2), [])
    assert.deepEqual(leave('a', 3), ['stop a'])
    assert.equal(it.state('a'), 'stopping')
    assert.deepEqual(arrive('a', 3), [])
    assert.deepEqual(it.ended('a', 4), ['refuse a 1: it is no longer in the catalog'])
    assert.equal(scheduler.status('a'), undefined)
    arrive('b', 5)
    assert.deepEqual(it.do('remove', 'b', 6), ['refuse b 1: it is no longer in the catalog', 'stop b'])
  })

  it('is added once', () => {
    const { scheduler } = stage({ a: {} })
    const settings = { needs: gpu(1), needsAsleep: undefined, stopAfterIdleMs: 1, isPinned: false }
    assert.throws(() => scheduler.add('a', settings, 0), /the engine a is already there/)
  })

  it('is not changed by news that come too late, or of an engine that is not there', () => {
    const { arrive, ...it } = stage({ a: { needsAsleep: gpu(2) } })
    assert.deepEqual([it.do('ready', 'a', 0), it.do('asleep', 'a', 0), it.ended('a', 0)], [[], [], []])
    assert.equal(it.state('a'), 'stopped')
    arrive('a', 1)
    assert.deepEqual(it.do('asleep', 'a', 2), [])
    assert.equal(it.state('a'), 'starting')
    assert.deepEqual(it.do('ready', 'missing', 3), [])
  })
})

describe('engines that share a device', () => {
  it('give way when they are idle and have served for five seconds', () => {
    const { arrive, leave, scheduler, ...it } = stage({ a: {}, b: {} })
    arrive('a', 0)
    it.do('ready', 'a', 100)
    leave('a', 200)
    assert.deepEqual(arrive('b', 300), [])
    assert.equal(scheduler.nextMs(), 5100)
    assert.deepEqual(it.pass(5099), [])
    assert.deepEqual(it.pass(5100), ['stop a'])
    assert.deepEqual(it.ended('a', 5200), ['start b'])
  })

  it('give way after a turn of thirty seconds while they have calls: new calls wait, and the others end', () => {
    const { arrive, leave, scheduler, ...it } = stage({ a: {}, b: {} })
    arrive('a', 0)
    it.do('ready', 'a', 100)
    arrive('b', 300)
    assert.equal(scheduler.nextMs(), 30_100)
    assert.deepEqual(arrive('a', 30_099), ['open a 1'])
    assert.deepEqual(it.pass(30_100), [])
    assert.deepEqual(arrive('a', 30_101), [])
    leave('a', 30_102)
    assert.deepEqual(leave('a', 30_103), ['stop a'])
    assert.deepEqual(it.ended('a', 30_104), ['start b'])
    assert.deepEqual(it.do('ready', 'b', 30_200), ['open b 1'])
  })

  it('take calls again when the one that needed the place has left', () => {
    const { arrive, leave, ...it } = stage({ a: {}, b: {} })
    arrive('a', 0)
    it.do('ready', 'a', 100)
    arrive('b', 300)
    it.pass(30_100)
    assert.deepEqual(arrive('a', 30_101), [])
    assert.deepEqual(leave('b', 30_102), ['open a 1'])
  })

  it('give way at once when they are asleep', () => {
    const { arrive, leave, ...it } = stage({ a: { needsAsleep: gpu(2) }, b: {} })
    arrive('a', 0)
    it.do('ready', 'a', 1)
    leave('a', 2)
    it.do('sleep', 'a', 3)
    it.do('asleep', 'a', 4)
    assert.deepEqual(arrive('b', 5), ['stop a'])
  })

  it('are not stopped for a place that another one is about to give back', () => {
    const { arrive, leave, ...it } = stage({ a: { needsAsleep: gpu(2) }, b: { needs: gpu(8) } })
    arrive('a', 0)
    it.do('ready', 'a', 1)
    leave('a', 2)
    it.do('sleep', 'a', 3)
    assert.deepEqual(arrive('b', 4), [])
    assert.deepEqual(it.do('asleep', 'a', 5), ['start b'])
  })

  it('that are pinned keep their place, and are not ended when idle', () => {
    const { arrive, leave, ...it } = stage({ a: { isPinned: true, stopAfterIdleMs: 1 }, b: {} })
    arrive('a', 0)
    it.do('ready', 'a', 1)
    leave('a', 2)
    assert.deepEqual(it.pass(100_000), [])
    assert.deepEqual(arrive('b', 100_000), ['refuse b 1: pinned engines leave no room for it'])
    assert.deepEqual(it.pin('a', false, 100_001), ['stop a'])
    assert.deepEqual(arrive('b', 100_002), [])
    assert.deepEqual(it.ended('a', 100_003), ['start b'])
  })

  it('start in the order in which they are wanted, and none overtakes on a device that an earlier one waits for', () => {
    const other = new Map([['other', 1]])
    const { arrive, leave, ...it } = stage({
      a: { needs: gpu(8) },
      b: { needs: gpu(8) },
      c: { needs: gpu(2) },
      d: { needs: other },
    })
    arrive('a', 0)
    assert.deepEqual(arrive('b', 1), [])
    assert.deepEqual(arrive('c', 2), [], 'although it would fit')
    assert.deepEqual(arrive('d', 3), ['start d'])
    it.do('ready', 'a', 4)
    leave('a', 5)
    assert.deepEqual(it.pass(5004), ['stop a'])
    assert.deepEqual(it.ended('a', 5005), ['start b', 'start c'])
  })

  it('start in the order of their first call or an operator, whichever was earlier', () => {
    const { arrive, leave, ...it } = stage({ a: {}, b: {}, c: {} })
    arrive('a', 0)
    assert.deepEqual(it.do('start', 'c', 1), [])
    assert.deepEqual(arrive('b', 2), [])
    assert.deepEqual(arrive('c', 3), [])
    it.do('ready', 'a', 4)
    leave('a', 5)
    it.pass(5004)
    assert.deepEqual(it.ended('a', 5005), ['start c'])
  })

  it('give way when they are idle, before one that has calls, however long its turn has been', () => {
    const half = { needs: gpu(5) }
    const { arrive, leave, ...it } = stage({ busy: half, idle: half, next: half })
    arrive('busy', 0)
    it.do('ready', 'busy', 1)
    arrive('idle', 2)
    it.do('ready', 'idle', 3)
    leave('idle', 40_000)
    assert.deepEqual(arrive('next', 50_000), ['stop idle'])
  })

  it('end when they have been asleep for their idle time, unless a call has come', () => {
    for (const isCalled of [false, true]) {
      const { arrive, leave, ...it } = stage({ a: { needsAsleep: gpu(2), stopAfterIdleMs: 1000 } })
      arrive('a', 0)
      it.do('ready', 'a', 1)
      leave('a', 2)
      it.do('sleep', 'a', 3)
      it.do('asleep', 'a', 4)
      if (!isCalled) assert.deepEqual(it.pass(1002), ['stop a'])
      else assert.deepEqual([arrive('a', 1002), arrive('a', 1003)], [['wake a'], []])
    }
  })
})

describe('an engine that is measured', () => {
  it('gives room to others if it takes less, and none starts beside it if it takes more', () => {
    const { arrive, scheduler, ...it } = stage({ a: {}, b: { needs: gpu(4) }, c: { needs: gpu(3) } })
    arrive('a', 0)
    it.do('ready', 'a', 1)
    assert.deepEqual(arrive('b', 2), [])
    assert.deepEqual(it.measured('a', 5, 3), ['start b'])
    it.do('ready', 'b', 4)
    assert.deepEqual(it.measured('a', 8, 5), [], 'both stay')
    assert.deepEqual(arrive('c', 6), [])
    assert.deepEqual(scheduler.status('a')?.held, gpu(8))
  })

  it('needs what was measured when it starts again', () => {
    const { arrive, leave, scheduler, ...it } = stage({ a: { stopAfterIdleMs: 10 } })
    arrive('a', 0)
    it.do('ready', 'a', 1)
    leave('a', 2)
    assert.deepEqual(it.pass(12), ['stop a'])
    it.measured('a', 5, 13)
    assert.deepEqual(scheduler.status('a')?.held, gpu(10), 'its process is still there')
    it.ended('a', 14)
    arrive('a', 15)
    assert.deepEqual(scheduler.status('a')?.held, gpu(5))
  })
})

describe('room for an engine', () => {
  const other = (changes: Partial<Evictable> & { readonly held: Evictable['held'] }): Evictable => ({
    leaves: undefined,
    isEvictable: true,
    isPinned: false,
    asleep: undefined,
    rank: [0, 0],
    ...changes,
  })
  const plan = (need: number, ...others: readonly Evictable[]) => planRoom(gpu(need), gpu(10), others)

  it('is there up to the last byte', () => {
    assert.deepEqual(plan(4, other({ held: gpu(6) })), { kind: 'fits' })
    assert.equal(plan(5, other({ held: gpu(6) })).kind, 'evict')
    assert.equal(plan(11).kind, 'never')
    assert.equal(planRoom(new Map([['port 1', 1]]), new Map(), []).kind, 'fits')
    const holder = other({ held: new Map([['port 1', 1]]), isEvictable: false })
    assert.equal(planRoom(new Map([['port 1', 1]]), new Map(), [holder]).kind, 'wait')
  })

  it('is made by the one that was used least recently, and by no more than needed', () => {
    const small = other({ held: gpu(2), rank: [0, 1] })
    const large = other({ held: gpu(7), rank: [0, 2] })
    const busy = other({ held: gpu(1), rank: [1, 0] })
    assert.deepEqual(plan(2, large, small, busy), { kind: 'evict', victims: [{ index: 1, kind: 'stop' }] })
    assert.deepEqual(plan(7, large, small, busy), { kind: 'evict', victims: [{ index: 0, kind: 'stop' }] })
    assert.deepEqual(plan(9, large, small, busy), {
      kind: 'evict',
      victims: [
        { index: 1, kind: 'stop' },
        { index: 0, kind: 'stop' },
      ],
    })
  })

  it('is made by idle engines before busy ones', () => {
    const busy = other({ held: gpu(5), rank: [1, 0] })
    const idle = [9, 8].map((time) => other({ held: gpu(2), rank: [0, time] }))
    const victims = (need: number) => {
      const found = plan(need, busy, ...idle)
      return found.kind === 'evict' ? found.victims.map(({ index }) => index) : []
    }
    assert.deepEqual([victims(3), victims(5), victims(6)], [[2], [2, 1], [0]])
  })

  it('is made by sleeping where that is enough, and else by stopping', () => {
    const sleeper = other({ held: gpu(9), asleep: gpu(3) })
    assert.deepEqual(plan(7, sleeper), { kind: 'evict', victims: [{ index: 0, kind: 'sleep' }] })
    assert.deepEqual(plan(8, sleeper), { kind: 'evict', victims: [{ index: 0, kind: 'stop' }] })
  })

  it('is waited for if it comes free anyway, or if nothing may give way now', () => {
    assert.deepEqual(plan(5, other({ held: gpu(9), leaves: gpu(5) }), other({ held: gpu(1), leaves: gpu(0) })), {
      kind: 'wait',
    })
    assert.deepEqual(plan(5, other({ held: gpu(9), isEvictable: false })), { kind: 'wait' })
    assert.deepEqual(plan(5, other({ held: gpu(9), isEvictable: false, isPinned: true })), { kind: 'never' })
  })
})
