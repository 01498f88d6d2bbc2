import {
  allowance,
  fullWindow,
  secondsLeft,
  viewBy,
  windowAt,
  type KeyRate,
  type RateDecision,
  type RateLimiter,
  type RateSubject,
  type TokenRates,
  type TokenView,
  knownAddresses,
  memoryRateLimiter,
} from './rate-limit.ts'
import type { Clock } from '../../shared/clock.ts'
import type { RedisLink } from '../../cluster/redis/link.ts'
import { luaBeside, script } from '../../cluster/redis/script.ts'

const takeScript = script(luaBeside(import.meta.url, 'take'))
/** No count reaches it. */
const NO_LIMIT = Number.MAX_SAFE_INTEGER

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
    tokens?: TokenRates,
  ): Promise<RateDecision> {
    const id = subject.kind === 'address' ? addresses.place(subject.id, windowAt(sharedClock.now())) : subject.id
    const place = `weir:{rate ${subject.kind} ${id}}`
    const ofRequests = [{ place, limit }, key && { place: `${place} ${key.id}`, limit: key.limit }]
    const ofTokens = [
      tokens?.limit === undefined ? undefined : { place: `${place} tokens`, limit: tokens.limit },
      tokens?.key && { place: `${place} ${tokens.key.id} tokens`, limit: tokens.key.limit },
    ]
    const counted = ofRequests.filter((it) => it !== undefined)
    const read = ofTokens.filter((it) => it !== undefined)
    const limits = [...counted.map((it) => it.limit), ...read.map((it) => (tokens?.isChecked ? it.limit : NO_LIMIT))]
    const windows = [...counted, ...read]
    const places = windows.map((it) => it.place)
    const answer = await link.run(takeScript, places, [requests, counted.length, ...limits])
    const [accepted, time, ...counts] = answer as [number, string, ...number[]]
    const nowMs = Number(time)
    aheadMs = nowMs - clock.now()
    const window = windowAt(nowMs)
    const [ofSubject, ofKey, tokensOfSubject, tokensOfKey] = [...ofRequests, ...ofTokens].map(
      (it) => it && allowance({ window, count: counts[windows.indexOf(it)]! }, it.limit, nowMs),
    )
    const view = viewBy(
      () => ofSubject!,
      () => ofKey,
      tokens && {
        allowanceOfSubject: () => tokensOfSubject,
        allowanceOfKey: () => tokensOfKey,
        async spend(count) {
          const spent = read.map((it) => it.place)
          const values = [count, spent.length, ...spent.map(() => NO_LIMIT)]
          // While Redis is unreachable, the count of this replica applies.
          if (link.membership()) await link.run(takeScript, spent, values).catch(() => {})
        },
      },
    )
    const full = accepted === 1 ? undefined : fullWindow(view, tokens)
    return { full, secondsLeft: secondsLeft(nowMs), ...view }
  }

  return {
    async take(subject, limit, key, tokens) {
      if (link.membership()) {
        try {
          const decision = await callScript(subject, limit, 1, key, tokens)
          if (decision.full) return decision
          // Also count locally, in case Redis becomes unreachable within this minute.
          const unlimited = key && { id: key.id, limit: Infinity }
          const local = await own.take(subject, Infinity, unlimited, tokens && { ...tokens, isChecked: false })
          if (!decision.tokens || !local.tokens) return decision
          return { ...decision, tokens: inBoth(decision.tokens, local.tokens) }
        } catch {
          // Redis has just become unreachable.
        }
      }
      const part = (whole: number): number => Math.floor(whole / link.replicas())
      const partOf = (of: KeyRate | undefined): KeyRate | undefined => of && { id: of.id, limit: part(of.limit) }
      const ofTokens = tokens && {
        limit: tokens.limit === undefined ? undefined : part(tokens.limit),
        key: partOf(tokens.key),
        isChecked: tokens.isChecked,
      }
      return own.take(subject, part(limit), partOf(key), ofTokens)
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

/** Shows the tokens of all replicas, and counts in both. */
function inBoth(shared: TokenView, local: TokenView): TokenView {
  return {
    ...shared,
    async spend(count) {
      await local.spend(count)
      await shared.spend(count)
    },
  }
}
