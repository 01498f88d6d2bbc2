import assert from 'node:assert/strict'
import { Redis } from 'ioredis'
import { laneKeys, laneScripts, limitValues } from '../../../src/queue/redis/lane-scripts.ts'
import type { LaneDecision, LaneStatus } from '../../../src/queue/lane.ts'
import { luaBeside } from '../../../src/cluster/redis/script.ts'
import { noBatchLoad } from '../../support/lane.ts'
import type { Request } from './witness.ts'
import type { OpenLane, SimulatedLane } from './world.ts'

const source = new URL('../../../src/queue/redis/', import.meta.url).href

/** Replaces outside.lua with the simulation's clock, and with messages that it can read. */
const simulated = `
local function clock() return tonumber(redis.call('GET', 'simulated:now')) end
local function notify(replica, message) redis.call('RPUSH', 'simulated:messages', message) end
`
const FAR = 10 ** 15

/**
 * Lanes in a real Redis for the simulation: the unchanged scripts, in virtual time. Requests alternate between two replicas,
 * so that the order holds across both. `breakLua` changes a script for a mutation test.
 */
export function redisLanes(socket: string, breakLua = (_name: string, lua: string): string => lua) {
  const redis = new Redis({ path: socket, protocol: 2 })
  const scripts = laneScripts((name) => (name === 'outside' ? simulated : breakLua(name, luaBeside(source, name))))
  const loaded = Promise.all([redis.flushall(), ...Object.values(scripts).map(({ lua }) => redis.script('LOAD', lua))])
  let lanes = 0

  const open: OpenLane = async (initial, decide, preempt) => {
    await loaded
    const keys = laneKeys(`simulated ${++lanes}`)
    const requests = new Map<string, Request>()
    let limits = initial
    let status: LaneStatus = { limits, inFlightRequests: 0, committedTokens: 0, queueDepth: 0, batch: noBatchLoad }
    let nextDeadlineMs = Infinity
    let isClosed = false

    const waitOf = ({ maxWaitMs }: Request): number => (maxWaitMs === Infinity ? -1 : maxWaitMs * 1000)
    const owner = (request: Request): string => `replica-${request.number % 2}`
    const idOf = ({ number, workspace, tier }: Request): string =>
      `${tier === 'batch' ? 'batch ' : ''}r.${number} ${workspace}`

    async function run(name: keyof typeof scripts, nowMs: number, replica: string, ...args: (string | number)[]) {
      const answers = await redis
        .pipeline()
        .set('simulated:now', nowMs * 1000)
        .evalsha(scripts[name].sha, keys.length, ...keys, replica, 1, ...args)
        .evalsha(scripts.status.sha, keys.length, ...keys, replica, 1)
        .zrangebyscore(keys[2]!, '-inf', FAR - 1, 'WITHSCORES', 'LIMIT', 0, 1)
        .zrange(keys[11]!, '0', '0', 'WITHSCORES')
        .lrange('simulated:messages', 0, -1)
        .del('simulated:messages')
        .exec()
      const [, answer, figures, due, batchDue, messages] = answers!.map(([error, value]) => {
        if (error) throw error
        return value
      }) as [unknown, unknown, number[], string[], string[], string[]]
      for (const message of messages) receive(message)
      await acknowledge(messages)
      const [inFlightRequests = 0, committedTokens = 0, queueDepth = 0, , , ...ofBatch] = figures.slice(5).map(Number)
      const batch = { inFlightRequests: ofBatch[0]!, committedTokens: ofBatch[1]!, queueDepth: ofBatch[2]! }
      status = { limits, inFlightRequests, committedTokens, queueDepth, batch }
      nextDeadlineMs = Math.min(Number(due[1] ?? Infinity), Number(batchDue[1] ?? Infinity)) / 1000
      return answer
    }

    /** Each replica acknowledges its grants together, and twice, because the second time must change nothing. */
    async function acknowledge(messages: readonly string[]): Promise<void> {
      const ids = messages.flatMap((message) => {
        const [, id = '', event = ''] = message.split('\n')
        return event.startsWith('granted') ? [id] : []
      })
      if (ids.length === 0) return
      const { sha } = scripts.acknowledge
      const pipeline = redis.pipeline()
      for (const [replica, granted] of Map.groupBy(ids, (id) => owner(requests.get(id)!))) {
        for (let time = 0; time < 2; time += 1) pipeline.evalsha(sha, keys.length, ...keys, replica, 1, ...granted)
      }
      for (const [error, answer] of (await pipeline.exec())!) assert.equal(error ?? answer, 1)
    }

    function receive(message: string): void {
      const [, id = '', event = ''] = message.split('\n')
      const request = requests.get(id)!
      // Redis may grant a place that its replica has just refused. Its `leave` is on its way.
      if (isClosed && request.standing === 'gone') return
      const [kind, wait] = event.split(' ')
      // Simultaneous arrivals get numbers a microsecond apart. The simulation's time has quarters of a millisecond.
      if (kind === 'preempted') preempt(request)
      else if (kind === 'granted') decide(request, { kind: 'admitted', waitMs: Math.round(Number(wait) / 250) / 4 })
      else decide(request, { kind } as LaneDecision)
    }

    /** Twice, because the second time must change nothing. */
    async function keep(request: Request, nowMs: number): Promise<void> {
      for (let time = 0; time < 2; time += 1) await run('keep', nowMs, owner(request), idOf(request))
    }

    for (const replica of ['replica-0', 'replica-1']) {
      await run('join', 0, replica, 'epoch', 0, FAR, ...limitValues(limits), 0, 0, 0)
    }
    const lane: SimulatedLane = {
      async arrive(request, nowMs) {
        if (isClosed) return { kind: 'closed' }
        const id = idOf(request)
        requests.set(id, request)
        const enter = () =>
          request.tier === 'batch'
            ? run('enter-batch', nowMs, owner(request), id, request.cost, waitOf(request))
            : run('enter', nowMs, owner(request), id, request.cost)
        const answer = (await enter()) as [string]
        const [kind] = answer
        // Entering again must change nothing.
        if ((kind === 'queued' || kind === 'admitted') && request.number % 5 === 0) {
          assert.deepEqual(await enter(), answer)
        }
        if (kind === 'queued') return undefined
        return (kind === 'admitted' ? { kind, waitMs: 0 } : { kind }) as LaneDecision
      },
      async keep(request, nowMs) {
        // The replica does not ask Redis if it knows that the place was preempted.
        if (request.isPreempted) return false
        await keep(request, nowMs)
        return true
      },
      keepUnaware: keep,
      leave: async (request, nowMs) => void (await run('leave', nowMs, owner(request), idOf(request))),
      expire: async (nowMs) => void (await run('settle', nowMs, 'replica-0')),
      async setLimits(next, nowMs) {
        limits = next
        await run('limits', nowMs, 'replica-1', ...limitValues(next))
      },
      /** Each replica closes by itself: it refuses its own callers and removes them from the queue. */
      async close(waiting, nowMs) {
        isClosed = true
        for (const request of waiting) decide(request, { kind: 'closed' })
        for (const request of waiting) await run('leave', nowMs, owner(request), idOf(request))
      },
      status: () => status,
      nextDeadlineMs: () => nextDeadlineMs,
    }
    return lane
  }
  return { open, close: () => redis.disconnect() }
}
