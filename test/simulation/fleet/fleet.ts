import { seededRandom } from '../../../src/shared/seeded-random.ts'
import { simulatedEngine } from './engine.ts'
import type { Load, LoadRequest, Session } from './loads.ts'
import { policies, type PolicyName } from './policies.ts'

export interface Fleet {
  readonly engines: number
  readonly replicas: number
  readonly cacheTokens: number
  readonly seed: number
}

export interface Result {
  readonly requestsPerSecond: number
  /** The part of all prompt tokens that was cached. */
  readonly hitRate: number
  readonly firstTokenMs: { readonly p50: number; readonly p99: number }
}

/** The part of the sessions that only fill the caches. */
const WARM_UP = 0.3

/** Plays a load against a fleet, as fast as its sessions go. The same arguments have the same result. */
export function play(load: Load, policy: PolicyName, fleet: Fleet): Result {
  const engines = Array.from({ length: fleet.engines }, () => simulatedEngine(fleet.cacheTokens))
  const choosers = policies(policy, engines, fleet.replicas, fleet)
  const loads = choosers.map(() => engines.map(() => 0))
  const random = seededRandom(fleet.seed)
  const arrivals: { readonly at: number; readonly send: () => void }[] = []
  let nextSession = 0
  let now = 0
  let cachedTokens = 0
  let promptTokens = 0
  let completed = 0
  /** When the caches had filled, and when the last session began: from then on, fewer and fewer are running. */
  let warmAt: number | undefined
  let endedAt: number | undefined
  const waits: number[] = []

  const isMeasured = (): boolean => warmAt !== undefined && endedAt === undefined

  function begin(): void {
    const session = load.sessions[nextSession++]
    if (nextSession > load.sessions.length * WARM_UP) warmAt ??= now
    if (session) send(session, 0)
    else endedAt ??= now
  }

  function send(session: Session, turn: number): void {
    const request: LoadRequest = session.requests[turn]!
    const replica = Math.floor(random() * choosers.length)
    const index = choosers[replica]!.choose(request, loads[replica]!)
    const engine = engines[index]!
    const sentAt = now
    loads[replica]![index]!++
    engine.add({
      ...request,
      cached(tokens) {
        if (!isMeasured()) return
        cachedTokens += tokens
        promptTokens += request.tokens
      },
      firstToken(at) {
        if (isMeasured()) waits.push(at - sentAt)
      },
      done(at) {
        now = at
        loads[replica]![index]!--
        if (isMeasured()) completed++
        if (turn + 1 === session.requests.length) begin()
        else later(at + session.pauseMs, () => send(session, turn + 1))
      },
    })
    engine.wake(now)
  }

  function later(at: number, react: () => void): void {
    const place = arrivals.findIndex((it) => it.at > at)
    arrivals.splice(place < 0 ? arrivals.length : place, 0, { at, send: react })
  }

  // Sessions do not all begin at the same moment.
  for (let index = 0; index < load.sessionsPerEngine * fleet.engines; index++) later(index * 20, begin)
  for (;;) {
    let first: (typeof engines)[number] | undefined
    for (const engine of engines) {
      if (engine.stepEndsAt !== undefined && (!first || engine.stepEndsAt < first.stepEndsAt!)) first = engine
    }
    const arrival = arrivals[0]
    if (arrival && (!first || arrival.at <= first.stepEndsAt!)) {
      arrivals.shift()
      now = arrival.at
      arrival.send()
    } else if (first) {
      now = first.stepEndsAt!
      first.step()
    } else break
  }
  const sorted = waits.toSorted((one, other) => one - other)
  return {
    requestsPerSecond: (completed / (endedAt! - warmAt!)) * 1000,
    hitRate: cachedTokens / promptTokens,
    firstTokenMs: { p50: sorted[Math.floor(sorted.length * 0.5)]!, p99: sorted[Math.floor(sorted.length * 0.99)]! },
  }
}
