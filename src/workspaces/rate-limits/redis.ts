import {
  allowance,
  secondsLeft,
  viewBy,
  windowAt,
  type KeyRate,
  type RateDecision,
  type RateLimiter,
  type RateSubject,
  knownAddresses,
  memoryRateLimiter,
} from './rate-limit.ts'
import type { Clock } from '../../shared/clock.ts'
import type { RedisLink } from '../../cluster/redis/link.ts'
import { luaBeside, script } from '../../cluster/redis/script.ts'

const takeScript = script(luaBeside(import.meta.url, 'take'))

/**
 * Counts over all replicas, in minutes of Redis' clock, with one round trip. While Redis is unreachable, each replica accepts
 * its part of the limit, so together they never accept more than the whole limit in a minute.
 */
export function redisRateLimiter(link: RedisLink, clock: Clock): RateLimiter {
  let aheadMs = 0
  const sharedClock: Clock = { now: () => clock.now() + aheadMs, monotonic: () => clock.monotonic() }
  const own = memoryRateLimiter(sharedClock)
  const addresses = knownAddresses()
  link.follow({ scripts: [takeScript], channels: [], joined() {}, lost() {}, heartbeat() {}, receive() {} })

  async function callScript(
    subject: RateSubject,
    limit: number,
    requests: 0 | 1,
    key?: KeyRate,
  ): Promise<RateDecision> {
    const id = subject.kind === 'address' ? addresses.place(subject.id, windowAt(sharedClock.now())) : subject.id
    const place = `weir:{rate ${subject.kind} ${id}}`
    const keys = key ? [place, `${place} ${key.id}`] : [place]
    const values = key ? [limit, requests, key.limit] : [limit, requests]
    const answer = (await link.run(takeScript, keys, values)) as [number, number, string, number?]
    const [accepted, count, time, keyCount = 0] = answer
    const nowMs = Number(time)
    aheadMs = nowMs - clock.now()
    const window = windowAt(nowMs)
    const ofSubject = allowance({ window, count }, limit, nowMs)
    const ofKey = key && allowance({ window, count: keyCount }, key.limit, nowMs)
    return {
      accepted: accepted === 1,
      isKeyFull: accepted !== 1 && count < limit,
      secondsLeft: secondsLeft(nowMs),
      ...viewBy(
        () => ofSubject,
        () => ofKey,
      ),
    }
  }

  return {
    async take(subject, limit, key) {
      if (link.membership()) {
        try {
          const decision = await callScript(subject, limit, 1, key)
          // Also count locally, in case Redis becomes unreachable within this minute.
          if (decision.accepted) await own.take(subject, Infinity, key && { id: key.id, limit: Infinity })
          return decision
        } catch {
          // Redis has just become unreachable.
        }
      }
      const part = (whole: number): number => Math.floor(whole / link.replicas())
      return own.take(subject, part(limit), key && { id: key.id, limit: part(key.limit) })
    },
    async peek(subject, limit) {
      if (link.membership()) {
        try {
          return await callScript(subject, limit, 0)
        } catch {
          // Redis has just become unreachable.
        }
      }
      return own.peek(subject, Math.floor(limit / link.replicas()))
    },
  }
}
