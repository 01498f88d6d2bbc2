import type { AlarmClock } from '../shared/clock.ts'
import { formatAud, type PicoAud } from '../shared/money/money.ts'
import type { AlertStore } from './alert-store.ts'
import type { EventType } from './event-table.ts'
import { alertEvent, type AlertEvent } from './events.ts'

/** Notices what no transaction shows: limits that are reached, days that pass, and engines and lanes that change. */
export interface Watch {
  /** Looks at everything now. */
  check(): Promise<void>
  close(): Promise<void>
}

/** What is spent of a limit in a period. */
interface SpendState {
  readonly workspaceId: string
  /** A month, or a day of a key: "2026-11" or "2026-11-18". */
  readonly period: string
  readonly limit: PicoAud
  readonly spent: PicoAud
}

export interface WorkspaceSpend extends SpendState {
  readonly isSoft: boolean
}

export interface KeySpend extends SpendState {
  readonly keyId: string
}

export interface OverdueInvoice {
  readonly number: string
  readonly workspaceId: string
  readonly due: string
}

export interface ExpiringKey {
  readonly id: string
  readonly workspaceId: string
  readonly expiresAt: number
}

export interface WatchedEngine {
  readonly url: string
  /** Set if the address is of this machine: on another one, it is another engine. */
  readonly machine: string | undefined
  readonly lane: string
  readonly isUp: boolean
}

export interface WatchParts {
  readonly store: Pick<AlertStore, 'addChange' | 'addEvents' | 'forgetEvents' | 'leaseWatch' | 'oldestUndelivered'>
  /** Of this process, among those that share the database. */
  readonly owner: string
  readonly clock: AlarmClock
  readonly endpoints: readonly string[]
  readonly spendThresholds: readonly number[]
  workspaceSpend(): Promise<readonly WorkspaceSpend[]>
  /** In pages, because there may be a million keys. */
  keySpend(): AsyncIterable<readonly KeySpend[]>
  engines(): readonly WatchedEngine[]
  lanes(): Promise<readonly { readonly lane: string; readonly queueDepth: number; readonly maxQueueDepth: number }[]>
  /** Those that became overdue in the last 30 days. */
  overdueInvoices(): Promise<readonly OverdueInvoice[]>
  /** Valid keys that expire before this time, in order. `after` is the last one of the page before. */
  expiringKeys(before: number, after: ExpiringKey | undefined): Promise<readonly ExpiringKey[]>
  /** How long the oldest delivery has waited; 0: none waits. */
  waited(ms: number): void
  failed(error: Error): void
}

const TICK_MS = 10_000
/** After a crash, another process takes over when this has passed. */
const LEASE_MS = 30_000
/** Keys are checked less often, because there may be many. */
const KEYS_MS = 60_000
/** What changes once a day is looked at less often. */
const DAYS_MS = 10 * 60_000
const ENGINE_HOLD_MS = 60_000
const LANE_HOLD_MS = 120_000
/** As in deploy/prometheus/rules.yaml. */
const SATURATED = 0.8
const DAY_MS = 86_400_000
const EXPIRY_DAYS = 7
/** Longer than any event can be noticed again: the longest is a month of spend. */
export const RETENTION_DAYS = 90

export function openWatch(parts: WatchParts): Watch {
  const { store, clock } = parts
  let isClosed = false
  let stopTimer = (): void => {}
  let keysCheckedAt = -Infinity
  let daysCheckedAt = -Infinity
  /** They exist in the database. What is noticed again and again is not written each time. */
  let known = new Set<string>()
  const engines = changes('engine.up', ENGINE_HOLD_MS)
  const lanes = changes('lane.recovered', LANE_HOLD_MS)

  /** Adds an event when a subject has been in a new state for so long that it counts. */
  function changes(usual: EventType, holdMs: number) {
    const seen = new Map<string, { readonly type: EventType; readonly since: number; isReported: boolean }>()
    return async (subject: string, type: EventType, event: (at: number) => AlertEvent): Promise<void> => {
      const now = clock.monotonic()
      let state = seen.get(subject)
      if (state?.type !== type) {
        state = { type, since: now, isReported: false }
        seen.set(subject, state)
      }
      if (state.isReported || now - state.since < holdMs) return
      await store.addChange(event(clock.now()), usual)
      state.isReported = true
    }
  }

  async function add(events: readonly AlertEvent[]): Promise<void> {
    const unknown = events.filter(({ id }) => !known.has(id))
    if (unknown.length > 0) await store.addEvents(unknown)
    for (const { id } of unknown) known.add(id)
  }

  function workspaceEvents(state: WorkspaceSpend): readonly AlertEvent[] {
    const { workspaceId, period, limit, isSoft } = state
    const at = clock.now()
    const data = spendData(state)
    return [
      ...reachedShares(state).map((percent) =>
        alertEvent('spend.threshold_reached', {
          unique: [workspaceId, period, percent],
          at,
          workspaceId,
          data: { ...data, percent },
        }),
      ),
      ...(state.spent >= limit
        ? [
            alertEvent('spend.limit_reached', {
              unique: [workspaceId, period, String(limit)],
              at,
              workspaceId,
              data: { ...data, is_soft: isSoft },
            }),
          ]
        : []),
    ]
  }

  function keyEvents(state: KeySpend): readonly AlertEvent[] {
    const { workspaceId, keyId, period, limit } = state
    const of = { at: clock.now(), workspaceId, keyId }
    const data = spendData(state)
    return [
      ...reachedShares(state).map((percent) =>
        alertEvent('key.spend_threshold_reached', {
          ...of,
          unique: [keyId, period, percent],
          data: { ...data, percent },
        }),
      ),
      ...(state.spent >= limit
        ? [alertEvent('key.spend_limit_reached', { ...of, unique: [keyId, period, String(limit)], data })]
        : []),
    ]
  }

  const reachedShares = ({ limit, spent }: SpendState): readonly number[] =>
    parts.spendThresholds.filter((percent) => limit > 0n && spent * 100n >= limit * BigInt(percent))

  async function checkEngines(): Promise<void> {
    const byUrl = Map.groupBy(parts.engines(), ({ url }) => url)
    for (const [url, addresses] of byUrl) {
      const type = addresses.some(({ isUp }) => isUp) ? 'engine.up' : 'engine.down'
      const data = { url, lanes: addresses.map(({ lane }) => lane) }
      const machine = addresses[0]?.machine
      const subject = machine === undefined ? `engine ${url}` : `engine ${url} on ${machine}`
      await engines(url, type, (at) => alertEvent(type, { unique: [subject, at], at, subject, data }))
    }
  }

  async function checkLanes(): Promise<void> {
    for (const { lane, queueDepth, maxQueueDepth } of await parts.lanes()) {
      const type = queueDepth > SATURATED * maxQueueDepth ? 'lane.saturated' : 'lane.recovered'
      const data = { lane, queue_depth: queueDepth, max_queue_depth: maxQueueDepth }
      await lanes(lane, type, (at) => alertEvent(type, { unique: [lane, at], at, subject: `lane ${lane}`, data }))
    }
  }

  async function checkDays(): Promise<void> {
    const at = clock.now()
    known = new Set()
    const overdue = await parts.overdueInvoices()
    await add(
      overdue.map(({ number, workspaceId, due }) =>
        alertEvent('invoice.overdue', { unique: [number], at, workspaceId, data: { number, due } }),
      ),
    )
    let last: ExpiringKey | undefined
    do {
      const keys = await parts.expiringKeys(at + EXPIRY_DAYS * DAY_MS, last)
      await add(keys.map((key) => expiryEvent(key, at)))
      last = keys.at(-1)
    } while (last)
    await store.forgetEvents(at - RETENTION_DAYS * DAY_MS)
  }

  /** Every process has a view of its own of engines and lanes, and metrics of its own. */
  async function check(): Promise<void> {
    await checkEngines()
    await checkLanes()
    const oldest = await store.oldestUndelivered(parts.endpoints)
    parts.waited(oldest === undefined ? 0 : Math.max(0, clock.now() - oldest))
    if (await lease(LEASE_MS)) await checkDatabase()
  }

  /** One process at a time reads what is the same for all. */
  const lease = (ms: number): Promise<boolean> => store.leaseWatch(parts.owner, clock.now(), clock.now() + ms)

  async function checkDatabase(): Promise<void> {
    await add((await parts.workspaceSpend()).flatMap(workspaceEvents))
    if (clock.monotonic() - keysCheckedAt >= KEYS_MS) {
      for await (const page of parts.keySpend()) {
        // There may be so many pages that the lease would end.
        if (!(await lease(LEASE_MS))) return
        await add(page.flatMap(keyEvents))
      }
      keysCheckedAt = clock.monotonic()
    }
    if (clock.monotonic() - daysCheckedAt < DAYS_MS) return
    await checkDays()
    daysCheckedAt = clock.monotonic()
  }

  async function tick(): Promise<void> {
    try {
      await check()
    } catch (error) {
      parts.failed(error as Error)
    }
    if (!isClosed) stopTimer = clock.after(TICK_MS, () => void (working = tick()))
  }
  let working = tick()

  return {
    check,
    async close() {
      isClosed = true
      stopTimer()
      await working
      // If it cannot be ended, it ends by itself.
      await lease(0).catch(() => {})
    },
  }
}

function spendData({ period, limit, spent }: SpendState) {
  return { period, limit: formatAud(limit), spent: formatAud(spent) }
}

/** A key whose expiry was moved gets another event. */
function expiryEvent({ id, workspaceId, expiresAt }: ExpiringKey, at: number): AlertEvent {
  const data = { expires_at: new Date(expiresAt).toISOString() }
  return alertEvent('key.expiring', { unique: [id, expiresAt], at, workspaceId, keyId: id, data })
}
