import { Redis, type RedisOptions } from 'ioredis'
import type { AlarmClock } from '../../shared/clock.ts'
import { luaBeside, script, type Script } from './script.ts'
import { watchAnswers } from './watch-answers.ts'

/**
 * One replica's connections to Redis, and its membership in the service. A follower obeys three rules: it sends its
 * complete state whenever `joined` is called, it works without Redis after `lost`, and it tolerates lost messages, because
 * `heartbeat` is called every second.
 */
export interface RedisLink {
  readonly replica: string
  readonly leaseMs: number
  /** Rejects if there is no answer; then the connection is closed, and `lost` is called. */
  run(script: Script, keys: readonly string[], values: readonly (string | number)[]): Promise<unknown>
  /** Adds a follower. Its scripts are loaded before `joined` is called. Add followers with channels before the link connects. */
  follow(follower: LinkFollower): void
  publish(channel: string, message: string): Promise<unknown>
  membership(): Membership | undefined
  /** The number of replicas when Redis last answered. */
  replicas(): number
  /** The period in which no other replica can have been given this one's allotment, on the monotonic clock. */
  proven(): { readonly sinceMs: number; readonly untilMs: number }
  close(): Promise<void>
}

/** A replica's membership in the service, for the lifetime of one connection. */
export interface Membership {
  readonly epoch: string
  /** Redis accepts only the newest incarnation of a replica. */
  readonly incarnation: number
  /** When the epoch begins to admit new requests, on the monotonic clock. */
  readonly quietUntilMs: number
}

export interface LinkFollower {
  readonly scripts: readonly Script[]
  readonly channels: readonly string[]
  joined(membership: Membership): void
  lost(): void
  /** Called every second, with or without Redis. */
  heartbeat(): void
  receive(channel: string, message: string): void
}

export interface LinkOptions {
  readonly url: string
  readonly replica: string
  readonly clock: AlarmClock
  readonly leaseMs?: number
  readonly heartbeatMs?: number
  /** The state that this replica reports to the others. */
  readonly about: () => object
  readonly events: LinkEvents
}

export interface LinkEvents {
  joined(epoch: string, replicas: number): void
  lost(reason: string): void
  /** This replica was asked to finish its work and leave. May be called more than once. */
  drainRequested(): void
}

export const REPLICAS_KEYS = ['weir:{replicas}', 'weir:{replicas}:leases'] as const
const replicasScript = script(luaBeside(import.meta.url, 'replicas'))
const CONNECT_MS = 2000
/** How long `close` waits for Redis, which may not answer. */
const CLOSE_MS = 500
const RECONNECT_MS_MAX = 500

/** How long to wait before this attempt to connect again. */
export const reconnectMs = (attempt: number): number => Math.min(20 * attempt, RECONNECT_MS_MAX)

export function openLink(options: LinkOptions): RedisLink {
  const { url, replica, clock, about, events, leaseMs = 5000, heartbeatMs = 1000 } = options
  const followers: LinkFollower[] = []
  let incarnation = 0
  let membership: Membership | undefined
  let replicas = 1
  let runId = ''
  let isClosed = false
  // At the start, requests wait for the first connection. This replica has no allotment yet.
  let proven = { sinceMs: clock.monotonic(), untilMs: clock.monotonic() + leaseMs }
  let reason = 'not connected yet'

  const settings = {
    protocol: 2 as const,
    connectionName: `weir-${replica}`,
    connectTimeout: CONNECT_MS,
    // Never resend a command whose outcome is unknown: joining sends all state that still matters.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    retryStrategy: reconnectMs,
  } satisfies RedisOptions
  const commands = new Redis(url, { ...settings, enableAutoPipelining: true })
  const messages = new Redis(url, { ...settings, autoResubscribe: false })
  const answers = watchAnswers(clock, leaseMs / 2, () => giveUp())
  /** Of the other connection, which may be silent alone. */
  const pings = watchAnswers(clock, leaseMs / 2, () => giveUp())

  for (const connection of [commands, messages]) {
    connection.on('error', (error: NodeJS.ErrnoException) => {
      reason = error.message
      // The host itself refuses the connection, so Redis is down for every other replica as well.
      if (error.code === 'ECONNREFUSED') prove(clock.monotonic())
    })
    connection.on('close', lose)
    connection.on('ready', () => void join())
  }
  messages.on('message', (channel: string, message: string) => {
    for (const follower of followers) if (follower.channels.includes(channel)) follower.receive(channel, message)
  })
  let cancelHeartbeat = clock.after(heartbeatMs, heartbeat)

  /** After a gap, other replicas may have been given this one's allotment, so the proven period starts again. */
  function prove(atMs: number): void {
    const sinceMs = atMs < proven.untilMs ? proven.sinceMs : atMs
    proven = { sinceMs, untilMs: Math.max(proven.untilMs, atMs + leaseMs) }
  }

  /** Destroys both connections, whatever the other side does. They reconnect at once. */
  function giveUp(why = 'Redis does not answer'): void {
    reason = why
    lose()
    for (const connection of [commands, messages]) connection.stream?.destroy()
  }

  function lose(): void {
    const wasMember = membership !== undefined
    membership = undefined
    answers.forget()
    pings.forget()
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
      await renewLease(attempt)
    } catch (error) {
      if (!(error instanceof Error) || attempt !== incarnation) return
      giveUp(error.message)
    }
  }

  /** Renews the lease, and starts a membership if there is none in this epoch. */
  async function renewLease(attempt: number): Promise<void> {
    const sentAtMs = clock.monotonic()
    const state = JSON.stringify(about())
    const answer = (await run(replicasScript, REPLICAS_KEYS, [replica, runId, leaseMs * 1000, state])) as [
      epoch: string,
      quiet: number,
      replicas: number,
      isDrainRequested: 0 | 1,
    ]
    const [epoch, quiet] = answer
    // An answer may arrive after the other connection was lost. The next join subscribes it again.
    if (attempt !== incarnation || messages.status !== 'ready' || isClosed) return
    replicas = answer[2]
    prove(sentAtMs)
    if (answer[3] === 1) events.drainRequested()
    if (membership?.epoch === epoch) return
    if (membership) for (const follower of followers) follower.lost()
    membership = { epoch, incarnation: attempt, quietUntilMs: clock.monotonic() + quiet / 1000 }
    events.joined(epoch, replicas)
    for (const follower of followers) follower.joined(membership)
  }

  function heartbeat(): void {
    cancelHeartbeat = clock.after(heartbeatMs, heartbeat)
    answers.check()
    pings.check()
    if (membership) {
      renewLease(incarnation).catch(() => {})
      pings.expect(messages.ping()).catch(() => {})
    } else void join()
    for (const follower of followers) follower.heartbeat()
  }

  async function run({ sha }: Script, keys: readonly string[], values: readonly (string | number)[]): Promise<unknown> {
    try {
      return await answers.expect(commands.evalsha(sha, keys.length, ...keys, ...values))
    } catch (error) {
      // Scripts are loaded with every new connection. Loading and resending one here would break the order of commands.
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
      // For a follower that is added later: its scripts are loaded before any command that it sends on this connection.
      for (const { lua } of follower.scripts) commands.script('LOAD', lua).catch(() => {})
      if (membership) follower.joined(membership)
    },
    publish: (channel, message) => answers.expect(commands.publish(channel, message)),
    membership: () => membership,
    replicas: () => replicas,
    proven: () => proven,
    async close() {
      isClosed = true
      cancelHeartbeat()
      if (membership) {
        const [replicaHash, leases] = REPLICAS_KEYS
        const gone = [
          commands.zrem(leases, replica),
          commands.hdel(replicaHash, `replica ${replica}`, `drain ${replica}`),
        ]
        // If Redis does not answer, the lease expires by itself.
        const late = Promise.withResolvers<void>()
        const cancel = clock.after(CLOSE_MS, late.resolve)
        await Promise.race([Promise.allSettled(gone), late.promise])
        cancel()
      }
      commands.disconnect()
      messages.disconnect()
    },
  }
}
