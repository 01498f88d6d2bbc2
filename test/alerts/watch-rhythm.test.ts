import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { AlertEvent } from '../../src/alerts/events.ts'
import { openWatch, type ExpiringKey, type KeySpend, type WatchParts } from '../../src/alerts/watch.ts'
import { gate } from '../support/waiting.ts'

/** When a watch looks at what, and what it writes, on a store that only records. */

const MINUTE = 60_000
const DAY = 86_400_000
const START = Date.UTC(2026, 10, 18)

function watching(changes: Partial<WatchParts> = {}) {
  const added: AlertEvent[] = []
  const changed: string[] = []
  const state = {
    now: START,
    oldest: undefined as number | undefined,
    isLeased: true,
    addEvents: async (events: readonly AlertEvent[]) => void added.push(...events),
    leaseWatch: async (_leaseUntil: number): Promise<boolean> => state.isLeased,
    addChange: async ({ subject, data }: AlertEvent, usual: string) => void changed.push(`${subject} ${data} ${usual}`),
  }
  const asked: unknown[] = []
  const timers: (readonly [number, () => void])[] = []
  const watch = openWatch({
    store: {
      addEvents: (events) => state.addEvents(events),
      addChange: (event, usual) => state.addChange(event, usual),
      forgetEvents: async (before) => void asked.push(['forget', state.now - before]),
      leaseWatch: (...lease) => (asked.push(lease), state.leaseWatch(lease[2])),
      oldestUndelivered: async (endpoints) => (asked.push(endpoints), state.oldest),
    },
    owner: 'me',
    clock: {
      now: () => state.now,
      monotonic: () => state.now,
      after(ms, ring) {
        const timer = [ms, ring] as const
        timers.push(timer)
        return () => void timers.splice(timers.indexOf(timer), 1)
      },
    },
    endpoints: ['hook'],
    spendThresholds: [50, 100],
    workspaceSpend: async () => [],
    async *keySpend() {},
    engines: () => [],
    lanes: async () => [],
    overdueInvoices: async () => [],
    expiringKeys: async () => [],
    waited: (ms) => void asked.push(`waited ${ms}`),
    failed: (error) => void asked.push(error.message),
    ...changes,
  })
  return { watch, state, added, changed, asked, timers }
}

/** The first check, which the watch begins itself, and one that a timer begins. */
const checked = (): Promise<void> => new Promise(setImmediate)

describe('a watch', () => {
  it('looks every ten seconds, and no more once it is closed, when it gives its lease back', async () => {
    const { watch, asked, timers, state } = watching()
    await checked()
    assert.deepEqual(
      timers.map(([ms]) => ms),
      [10_000],
    )
    assert.deepEqual(asked.slice(0, 2), [['hook'], 'waited 0'])
    const [[, ring] = assert.fail('no timer')] = timers.splice(0)
    state.oldest = START - 1500
    asked.length = 0
    ring()
    await checked()
    assert.deepEqual(asked, [['hook'], 'waited 1500', ['me', START, START + 30_000]])
    state.oldest = START + 1
    asked.length = 0
    timers.splice(0).forEach(([, again]) => again())
    const closing = watch.close()
    await closing
    assert.deepEqual(asked.slice(1), ['waited 0', ['me', START, START + 30_000], ['me', START, START]])
    assert.deepEqual(timers, [], 'the check that was running sets no further timer')
  })

  it('that is closed between two checks cancels the next one', async () => {
    const { watch, timers } = watching()
    await checked()
    assert.equal(timers.length, 1)
    await watch.close()
    assert.deepEqual(timers, [])
  })

  it('reports a check that fails, and goes on', async () => {
    const { asked, timers } = watching({ lanes: () => Promise.reject(new Error('Redis is away')) })
    await checked()
    assert.deepEqual([asked, timers.length], [['Redis is away'], 1])
  })

  it('leaves what is the same for all processes to the one with the lease', async () => {
    const { state, asked } = watching({ workspaceSpend: async () => assert.fail('another process reads it') })
    state.isLeased = false
    await checked()
    assert.deepEqual(asked, [['hook'], 'waited 0', ['me', START, START + 30_000]])
  })

  it('reads the spend of keys once a minute, and what changes by the day every ten minutes', async () => {
    const times: string[] = []
    const { watch, state, asked } = watching({
      async *keySpend() {
        times.push(`keys ${(state.now - START) / MINUTE}`)
        yield []
      },
      overdueInvoices: async () => (times.push(`days ${(state.now - START) / MINUTE}`), []),
    })
    await checked()
    for (const ms of [MINUTE - 1, MINUTE, 10 * MINUTE - 1, 10 * MINUTE]) {
      state.now = START + ms
      await watch.check()
    }
    assert.deepEqual(times, ['keys 0', 'days 0', 'keys 1', `keys ${10 - 1 / MINUTE}`, 'days 10'])
    const forgotten = asked.filter((it) => Array.isArray(it) && it[0] === 'forget')
    assert.deepEqual(forgotten, [
      ['forget', 90 * DAY],
      ['forget', 90 * DAY],
    ])
  })

  it('writes an event once, and once more after it has read what changes by the day', async () => {
    const spent = { workspaceId: 'ws', period: '2026-11', limit: 10n, spent: 5n, isSoft: true }
    const { watch, state, added } = watching({ workspaceSpend: async () => [spent] })
    await checked()
    const counts: number[] = []
    for (const pause of [0, 0, 10 * MINUTE, 0, 0]) {
      state.now += pause
      await watch.check()
      counts.push(added.length)
    }
    // At the end of a check that reads what changes by the day, it forgets what it has written.
    assert.deepEqual(counts, [2, 2, 2, 3, 3])
    assert.equal(new Set(added.map(({ id }) => id)).size, 1)
  })

  it('writes an event with the next check if it could not be stored, and reads the days again that failed', async () => {
    const spent = { workspaceId: 'ws', period: '2026-11', limit: 10n, spent: 5n, isSoft: true }
    const reads: number[] = []
    const { watch, state, added } = watching({
      workspaceSpend: async () => [spent],
      async overdueInvoices() {
        reads.push(state.now - START)
        if (reads.length === 1) throw new Error('the database is away')
        return []
      },
    })
    const { addEvents } = state
    state.addEvents = () => Promise.reject(new Error('the database is locked'))
    await checked()
    state.addEvents = addEvents
    state.now += 1
    await assert.rejects(watch.check(), { message: 'the database is away' })
    assert.deepEqual(
      added.map(({ type }) => type),
      ['spend.threshold_reached'],
    )
    state.now += 1
    await watch.check()
    assert.deepEqual(reads, [1, 2])
  })

  it('waits at its end until its lease is given back, unless that fails', async () => {
    const { watch, state } = watching()
    await checked()
    const given = gate()
    const steps: string[] = []
    state.leaseWatch = async () => {
      await given.opened
      steps.push('given back')
      throw new Error('the database is away')
    }
    const closing = watch.close().then(() => steps.push('closed'))
    await checked()
    given.open()
    await closing
    assert.deepEqual(steps, ['given back', 'closed'])
  })

  it('reports a limit of 0 as reached, without shares of it', async () => {
    const { added } = watching({
      workspaceSpend: async () => [{ workspaceId: 'ws', period: '2026-11', limit: 0n, spent: 0n, isSoft: false }],
    })
    await checked()
    assert.deepEqual([...new Set(added.map(({ type }) => type))], ['spend.limit_reached'])
  })

  it('names the key, its workspace and the share of its limit', async () => {
    const spend: KeySpend = { workspaceId: 'ws', keyId: 'key', period: '2026-11-18', limit: 10n ** 12n, spent: 0n }
    const { watch, state, added } = watching({
      async *keySpend() {
        yield [{ ...spend, spent: 10n ** 12n / 2n - 1n }]
        yield [{ ...spend, spent: 10n ** 12n / 2n }]
      },
    })
    await checked()
    const [{ id: first, ...event } = assert.fail('no event')] = added
    assert.deepEqual(event, {
      type: 'key.spend_threshold_reached',
      occurredAt: START,
      workspaceId: 'ws',
      keyId: 'key',
      subject: null,
      data: '{"period":"2026-11-18","limit":"1.00","spent":"0.50","percent":50}',
    })
    added.length = 0
    state.now += MINUTE
    Object.assign(spend, { period: '2026-11-19' })
    await watch.check()
    assert.notEqual(added[0]?.id, first, 'another day')
  })

  it('asks for keys that expire within seven days, page after page', async () => {
    const keys = ['a', 'b', 'c'].map((id, index) => ({ id, workspaceId: 'ws', expiresAt: START + index }))
    const pages: unknown[] = []
    const { added } = watching({
      async expiringKeys(before: number, after: ExpiringKey | undefined) {
        pages.push([before - START, after?.id])
        const from = after ? keys.findIndex(({ id }) => id === after.id) + 1 : 0
        return keys.slice(from, from + 2)
      },
    })
    await checked()
    assert.deepEqual(pages, [
      [7 * DAY, undefined],
      [7 * DAY, 'b'],
      [7 * DAY, 'c'],
    ])
    assert.deepEqual([...new Set(added.map(({ keyId }) => keyId))], ['a', 'b', 'c'])
  })

  it('takes an engine for up while one of its lanes reaches it, and reports a change once', async () => {
    const lanes = [
      { url: 'http://e', machine: undefined, lane: 'a', isUp: true },
      { url: 'http://e', machine: undefined, lane: 'b', isUp: false },
    ]
    const { watch, state, changed } = watching({ engines: () => lanes })
    await checked()
    for (let minute = 0; minute < 3; minute += 1) {
      state.now += MINUTE
      await watch.check()
    }
    assert.deepEqual(changed, ['engine http://e {"url":"http://e","lanes":["a","b"]} engine.up'])
  })

  it('reports a change with the next check if it could not be stored', async () => {
    const failures = [new Error('the database is away')]
    const stored: (string | null)[] = []
    const { watch, state } = watching({
      engines: () => [{ url: 'http://e', machine: undefined, lane: 'a', isUp: false }],
    })
    state.addChange = async ({ subject }) => {
      const failure = failures.pop()
      if (failure) throw failure
      stored.push(subject)
    }
    await checked()
    state.now += MINUTE
    await assert.rejects(watch.check(), /the database is away/)
    await watch.check()
    await watch.check()
    assert.deepEqual(stored, ['engine http://e'])
  })
})
