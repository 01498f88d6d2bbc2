import { batchLimitsOf, batchRoomOf } from '../batch-places.ts'
import type { LaneLimits } from '../lane.ts'
import type { LaneLoad } from '../admission.ts'
import type { Membership, RedisLink } from '../../cluster/redis/link.ts'
import { luaBeside, script, type Script } from '../../cluster/redis/script.ts'

const names = [
  'enter',
  'enter-batch',
  'acknowledge',
  'keep',
  'leave',
  'heartbeat',
  'join',
  'limits',
  'settle',
  'part',
  'status',
] as const
type LaneScripts = Readonly<Record<(typeof names)[number], Script>>

/** `lua` returns the text of each file. The simulation replaces `outside`, and mutation tests replace others. */
export function laneScripts(lua = (name: string) => luaBeside(import.meta.url, name)): LaneScripts {
  const shared = [lua('outside'), lua('lane'), lua('batch-queue'), lua('batch')]
  return Object.fromEntries(names.map((name) => [name, script(...shared, lua(name))])) as LaneScripts
}

export const scripts = laneScripts()

/** What a replica may serve without Redis, in addition to what it has in flight. */
export interface Promised {
  readonly requests: number
  readonly tokens: number
}

/** A place in a lane as its replica reports it when it joins. */
export type PlaceSnapshot = { readonly id: string; readonly cost: number } & (
  | { readonly state: 'in_flight' }
  /** A batch place in flight. */
  | { readonly state: 'in_flight' | 'kept' | 'preempted'; readonly startedMsAgo: number }
  | { readonly state: 'queued'; readonly number: string | undefined; readonly ageMs: number; readonly leftMs: number }
)

export type EnterAnswer = readonly [
  kind: 'admitted' | 'queued' | 'too_large' | 'queue_full' | 'workspace_queue_full' | 'overloaded' | 'unknown',
  number?: string,
]

type HeartbeatAnswer = readonly [
  requests: string,
  tokens: string,
  replicas: number,
  unacknowledged: readonly string[],
  preempted: readonly string[],
]

/** The keys of a lane. They share a hash tag, so that a Redis cluster keeps them on one node. */
export function laneKeys(lane: string): readonly string[] {
  const tag = `weir:{${lane}}`
  const online = ['lane', 'queue', 'due', 'grants', 'places', 'workspaces']
  const batch = ['preemptible', 'leaving', 'batch-places', 'batch-order', 'batch-turns', 'batch-ends']
  return [...online, ...batch].map((name) => `${tag}:${name}`)
}

/** Calls the scripts of one lane on behalf of one replica. */
export function remoteLane(link: RedisLink, lane: string) {
  const keys = laneKeys(lane)
  const run = (script: Script, { incarnation }: Membership, ...values: (string | number)[]): Promise<unknown> =>
    link.run(script, keys, [link.replica, incarnation, ...values])

  return {
    /** Identifies the lane in messages from Redis. */
    key: keys[0] ?? '',
    enter: (member: Membership, id: string, cost: number) =>
      run(scripts.enter, member, id, cost) as Promise<EnterAnswer>,
    enterBatch: (member: Membership, id: string, cost: number, maxWaitMs: number) =>
      run(scripts['enter-batch'], member, id, cost, waitMicros(maxWaitMs)) as Promise<EnterAnswer>,
    /** Resolves with whether all these places still belong to the replica. */
    acknowledge: async (member: Membership, ids: readonly string[]) =>
      (await run(scripts.acknowledge, member, ...ids)) === 1,
    keep: (member: Membership, id: string) => run(scripts.keep, member, id),
    leave: (member: Membership, id: string) => run(scripts.leave, member, id),
    limits: (member: Membership, limits: LaneLimits) => run(scripts.limits, member, ...limitValues(limits)),
    leaveLane: (member: Membership) => run(scripts.part, member),

    /** Resolves with undefined if the replica must join again. */
    async heartbeat(member: Membership, { requests, tokens }: Promised) {
      const answer = await run(scripts.heartbeat, member, link.leaseMs * 1000, requests, tokens)
      if (answer === null) return undefined
      const [newRequests, newTokens, replicas, unacknowledged, preempted] = answer as HeartbeatAnswer
      const promised = { requests: Number(newRequests), tokens: Number(newTokens) }
      return { promised, replicas, unacknowledged, preempted }
    },

    /** Resolves with the milliseconds until the lane admits its first request. */
    async join(
      member: Membership,
      {
        quietMs,
        limits,
        isNewest,
        promised,
        places,
      }: {
        quietMs: number
        limits: LaneLimits
        isNewest: boolean
        promised: Promised
        places: readonly PlaceSnapshot[]
      },
    ): Promise<number> {
      const values = places.flatMap((place) => [place.id, place.state, place.cost, positionOf(place)])
      const quiet = await run(
        scripts.join,
        member,
        member.epoch,
        micros(quietMs),
        link.leaseMs * 1000,
        ...limitValues(limits),
        isNewest ? 1 : 0,
        promised.requests,
        promised.tokens,
        ...values,
      )
      return Number(quiet) / 1000
    },

    /** Resolves with undefined if no replica has the lane open. */
    async status(): Promise<LaneLoad | undefined> {
      const answer = (await link.run(scripts.status, keys, [link.replica, 0])) as (string | number)[]
      const [tokenBudget, maxConcurrentRequests, maxQueueDepth, maxWait, perWorkspace, ...figures] = answer.map(Number)
      const [inFlightRequests = 0, committedTokens = 0, queueDepth = 0, , oldestWait = 0, ...ofBatch] = figures
      const [batchRequests = 0, batchTokens = 0, batchDepth = 0] = ofBatch
      if (answer[0] === '' || tokenBudget === undefined) return undefined
      const limits = {
        tokenBudget,
        maxConcurrentRequests: maxConcurrentRequests ?? 0,
        maxQueueDepth: maxQueueDepth ?? 0,
        maxWaitMs: (maxWait ?? 0) / 1000,
        maxRequestsPerWorkspace: perWorkspace === NO_LIMIT ? undefined : perWorkspace,
      }
      const batch = { inFlightRequests: batchRequests, committedTokens: batchTokens, queueDepth: batchDepth }
      return { limits, inFlightRequests, committedTokens, queueDepth, batch, oldestWaitMs: oldestWait / 1000 }
    },
  }
}

export type RemoteLane = ReturnType<typeof remoteLane>

/** Stands for a limit that is not set. */
const NO_LIMIT = -1

/** The limits as the scripts read them. Those for batch places are one value, because the scripts rarely need them. */
export function limitValues(limits: LaneLimits): readonly (string | number)[] {
  const { tokenBudget, maxConcurrentRequests, maxQueueDepth, maxWaitMs, maxRequestsPerWorkspace } = limits
  const { reserveConcurrent, reserveTokens, preempt, maxQueueDepth: batchDepth } = batchLimitsOf(limits)
  const { requests, tokens } = batchRoomOf(limits).ofBatch
  return [
    tokenBudget,
    maxConcurrentRequests,
    maxQueueDepth,
    micros(maxWaitMs),
    maxRequestsPerWorkspace ?? NO_LIMIT,
    [reserveConcurrent, reserveTokens, requests, tokens, preempt ? 1 : 0, batchDepth].join(' '),
  ]
}

function positionOf(place: PlaceSnapshot): string | number {
  if ('startedMsAgo' in place) return micros(place.startedMsAgo)
  if (place.state === 'in_flight') return '-'
  const { number, ageMs, leftMs } = place
  return `${number ?? -Math.max(1, micros(ageMs))} ${waitMicros(leftMs)}`
}

/** Batch places may wait as long as it takes. */
function waitMicros(ms: number): number {
  return ms === Infinity ? NO_LIMIT : micros(ms)
}

function micros(ms: number): number {
  return Math.max(0, Math.round(ms * 1000))
}
