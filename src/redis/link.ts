import { setTimeout as sleep } from 'node:timers/promises'
import { Redis, type RedisOptions } from 'ioredis'
import type { AlarmClock } from '../ports/clock.ts'
import { luaBeside, script, type Script } from './script.ts'
import { watchAnswers } from './watch-answers.ts'

/**
 * One replica's connections to Redis, and its membership in the service. What is built on it follows three rules:
 * it says again all that it has whenever `joined` is called, it does without Redis from `lost` on, and it needs no
 * message to arrive, because `beat` comes every second.
 */
export interface RedisLink {
  readonly replica: string
  readonly leaseMs: number
  /** Rejects if there is no answer; then the connection is given up, and `lost` is called. */
  run(script: Script, keys: readonly string[], values: readonly (string | number)[]): Promise<unknown>
  /** Adds a part that uses the link. Its scripts are loaded before `joined` is called. One with channels comes first. */
  follow(follower: LinkFollower): void
  publish(channel: string, message: string): Promise<unknown>
  membership(): Membership | undefined
  /** How many replicas there were when Redis was last heard. */
  replicas(): number
  /** Since when and until when it is certain that no other replica was given what this one may serve on its own; on the clock that never jumps. */
  proven(): { readonly sinceMs: number; readonly untilMs: number }
  close(): Promise<void>
}

/** A replica's place in the service, from one connection to its end. */
export interface Membership {
  readonly epoch: string
  /** Redis listens to the newest incarnation of a replica only. */
  readonly incarnation: number
  /** When the epoch admits newcomers; on the clock that never jumps. */
  readonly quietUntilMs: number
}

export interface LinkFollower {
  readonly scripts: readonly Script[]
  readonly channels: readonly string[]
  joined(membership: Membership): void
  lost(): void
  /** Every second, with Redis or without. */
  beat(): void
  hear(channel: string, message: string): void
}

export interface LinkOptions {
  readonly url: string
  readonly replica: string
  readonly clock: AlarmClock
  readonly leaseMs?: number
  readonly beatMs?: number
  /** What this replica tells the others about itself. */
  readonly about: () => object
  readonly events: LinkEvents
}

export interface LinkEvents {
  joined(epoch: string, replicas: number): void
  lost(reason: string): void
  /** Somebody wants this replica to finish its work and leave. May be called again. */
  askedToDrain(): void
}

export const REPLICAS_KEYS = ['weir:{replicas}', 'weir:{replicas}:leases'] as const
const replicasScript = script(luaBeside(import.meta.url, 'replicas'))
const CONNECT_MS = 2000
/** Redis may be silent when this replica goes away. */
const GOODBYE_MS = 500
const RECONNECT_MS_MAX = 500

/** How long to wait before this attempt to connect again. */
export const reconnectMs = (attempt: number): number => Math.min(20 * attempt, RECONNECT_MS_MAX)

export function openLink(options: LinkOptions): RedisLink {
  const { url, replica, clock, about, events, leaseMs = 5000, beatMs = 1000 } = options
  const followers: LinkFollower[] = []
  let incarnation = 0
  let membership: Membership | undefined
  let replicas = 1
  let runId = ''
  let isClosed = false
  // At the start, callers wait for the first connection. This replica has no share yet.
  let proven = { sinceMs: clock.monotonic(), untilMs: clock.monotonic() + leaseMs }
  let reason = 'not connected yet'

  const settings = {
    protocol: 2 as const,
    connectionName: `weir-${replica}`,
    connectTimeout: CONNECT_MS,
    // A command whose fate is unknown is never sent again: joining says everything that still matters.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    retryStrategy: reconnectMs,
  } satisfies RedisOptions
  const commands = new Redis(url, { ...settings, enableAutoPipelining: true })
  const messages = new Redis(url, { ...settings, autoResubscribe: false })
  const answers = watchAnswers(clock, leaseMs / 2, () => giveUp())

  for (const connection of [commands, messages]) {
    connection.on('error', (error: NodeJS.ErrnoException) => {
      reason = error.message
      // Redis' own machine says that it does not run, so it serves nobody else either.
      if (error.code === 'ECONNREFUSED') prove(clock.monotonic())
    })
    connection.on('close', lose)
    connection.on('ready', () => void join())
  }
  messages.on('message', (channel: string, message: string) => {
    for (const follower of followers) if (follower.channels.includes(channel)) follower.hear(channel, message)
  })
  let cancelBeat = clock.after(beatMs, beat)

  /** After a gap, others may have been given what this replica had: what is proven begins anew. */
  function prove(atMs: number): void {
    const sinceMs = atMs < proven.untilMs ? proven.sinceMs : atMs
    proven = { sinceMs, untilMs: Math.max(proven.untilMs, atMs + leaseMs) }
  }

  /** Ends both connections, whatever the other side does; they are made again at once. */
  function giveUp(why = 'Redis does not answer'): void {
    reason = why
    lose()
    for (const connection of [commands, messages]) connection.stream?.destroy()
  }

  function lose(): void {
    const wasMember = membership !== undefined
    membership = undefined
    answers.forget()
    if (wasMember) for (const follower of followers) follower.lost()
    if (wasMember && !isClosed) events.lost(reason)
  }

  async function join(): Promise<void> {
    if (membership || commands.status !== 'ready' || messages.status !== 'ready') return
    const attempt = ++incarnation
    try {
      const scripts = [replicasScript, ...followers.flatMap((follower) => follower.scripts)]
      const channels = followers.flatMap((follower) => follower.channels)
      const [info] = await answers.expect(
        Promise.all([
          commands.info('server'),
          channels.length > 0 ? messages.subscribe(...channels) : undefined,
          ...scripts.map(({ lua }) => commands.script('LOAD', lua)),
        ]),
      )
      runId = /^run_id:(\S+)/m.exec(info)?.[1] ?? ''
      await live(attempt)
    } catch (error) {
      if (!(error instanceof Error) || attempt !== incarnation) return
      giveUp(error.message)
    }
  }

  /** Renews the lease, and begins a membership if there is none in this epoch. */
  async function live(attempt: number): Promise<void> {
    const sentAtMs = clock.monotonic()
    const said = JSON.stringify(about())
    const answer = (await run(replicasScript, REPLICAS_KEYS, [replica, runId, leaseMs * 1000, said])) as [
      epoch: string,
      quiet: number,
      replicas: number,
      isAskedToDrain: 0 | 1,
    ]
    const [epoch, quiet] = answer
    if (attempt !== incarnation || isClosed) return
    replicas = answer[2]
    prove(sentAtMs)
    if (answer[3] === 1) events.askedToDrain()
    if (membership?.epoch === epoch) return
    if (membership) for (const follower of followers) follower.lost()
    membership = { epoch, incarnation: attempt, quietUntilMs: clock.monotonic() + quiet / 1000 }
    events.joined(epoch, replicas)
    for (const follower of followers) follower.joined(membership)
  }

  function beat(): void {
    cancelBeat = clock.after(beatMs, beat)
    answers.check()
    if (membership) {
      live(incarnation).catch(() => {})
      answers.expect(messages.ping()).catch(() => {})
    } else void join()
    for (const follower of followers) follower.beat()
  }

  async function run({ sha }: Script, keys: readonly string[], values: readonly (string | number)[]): Promise<unknown> {
    try {
      return await answers.expect(commands.evalsha(sha, keys.length, ...keys, ...values))
    } catch (error) {
      // Scripts are loaded anew with every connection. Sending one again would break the order of commands.
      if (error instanceof Error && error.message.startsWith('NOSCRIPT')) giveUp('Redis lost its scripts')
      throw error
    }
  }

  return {
    replica,
    leaseMs,
    run,
    follow(follower) {
      followers.push(follower)
      // A part that comes later: its scripts are loaded in front of whatever it runs on this connection.
      for (const { lua } of follower.scripts) commands.script('LOAD', lua).catch(() => {})
      if (membership) follower.joined(membership)
    },
    publish: (channel, message) => answers.expect(commands.publish(channel, message)),
    membership: () => membership,
    replicas: () => replicas,
    proven: () => proven,
    async close() {
      isClosed = true
      cancelBeat()
      if (membership) {
        const [replicaHash, leases] = REPLICAS_KEYS
        const gone = [
          commands.zrem(leases, replica),
          commands.hdel(replicaHash, `replica ${replica}`, `drain ${replica}`),
        ]
        // Redis may have gone away just now; then the lease ends by itself.
        await Promise.race([Promise.allSettled(gone), sleep(GOODBYE_MS, undefined, { ref: false })])
      }
      commands.disconnect()
      messages.disconnect()
    },
  }
}
