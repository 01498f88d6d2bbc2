import { planRoom, type Amounts, type Budgets, type Evictable } from './room.ts'

/** Which engines run, end and sleep, decided after every event. Pure; a part of scheduler.ts. */

export const runStates = [
  'stopped',
  'starting',
  'ready',
  'falling_asleep',
  'asleep',
  'waking',
  'stopping',
  'failed',
] as const
export type RunState = (typeof runStates)[number]

export interface EngineSettings {
  /** What it takes of each resource while it runs. */
  readonly needs: Amounts
  /** What it still takes while it is asleep; undefined: it cannot sleep. */
  readonly needsAsleep: Amounts | undefined
  /** Infinity: it keeps running. */
  readonly stopAfterIdleMs: number
  readonly isPinned: boolean
}

export interface Rules {
  /** A started engine is not swapped before it has been ready for this long. */
  readonly minServiceMs: number
  /** How long an engine with calls keeps its place while another one waits for it. */
  readonly maxTurnMs: number
  /** A crash after this long is not counted with the ones before it. */
  readonly healthyMs: number
  readonly firstBackoffMs: number
  readonly maxBackoffMs: number
}

export const usualRules: Rules = Object.freeze({
  minServiceMs: 5000,
  maxTurnMs: 30_000,
  healthyMs: 30_000,
  firstBackoffMs: 1000,
  maxBackoffMs: 60_000,
})

/** One call of an engine. Only the scheduler writes here. */
export class ScheduledCall {
  readonly engine: string
  readonly arrivedAtMs: number
  state: 'waiting' | 'running' | 'over' = 'waiting'

  constructor(engine: string, arrivedAtMs: number) {
    this.engine = engine
    this.arrivedAtMs = arrivedAtMs
  }
}

export type Effect =
  /** Starts or ends the process, or lets it sleep. The driver reports `ready`, `asleep` or `ended`. */
  | { readonly kind: 'start' | 'stop' | 'sleep' | 'wake'; readonly engine: string }
  /** The calls go to the engine, in this order. */
  | { readonly kind: 'open'; readonly engine: string; readonly calls: readonly ScheduledCall[] }
  | {
      readonly kind: 'refuse'
      readonly engine: string
      readonly calls: readonly ScheduledCall[]
      readonly reason: string
    }

export interface EngineEntry {
  settings: EngineSettings
  isPinned: boolean
  state: RunState
  sinceMs: number
  /** What the process has. A process that ends has it until it is gone. */
  held: Amounts
  /** In the order of arrival. */
  readonly waiting: Set<ScheduledCall>
  running: number
  /** Since when it is wanted without a call: an operator started it, or it is preloaded. */
  requestedAtMs: number | undefined
  /** An operator wants it to end or to sleep, once its calls have ended. */
  ending: 'stop' | 'sleep' | undefined
  isRemoved: boolean
  /** Its place is needed: further calls wait. */
  isClosing: boolean
  usedAtMs: number
  failures: number
  retryAtMs: number
  problem: string | undefined
  /** It has never become ready since its last start, so callers are refused until the next attempt. */
  hasFailedToStart: boolean
}

export const nothing: Amounts = new Map()

const isIdle = (entry: EngineEntry): boolean => entry.running === 0
export const hasProcess = ({ state }: EngineEntry): boolean => state !== 'stopped' && state !== 'failed'

export function enter(entry: EngineEntry, state: RunState, nowMs: number): void {
  entry.state = state
  entry.sinceMs = nowMs
}

/** What is decided after every event. */
export function openDecisions(budgets: Budgets, rules: Rules) {
  const entries = new Map<string, EngineEntry>()
  let effects: Effect[] = []
  let nextMs = Infinity

  function act(kind: 'start' | 'stop' | 'sleep' | 'wake', name: string, entry: EngineEntry, nowMs: number): void {
    const next = { start: 'starting', stop: 'stopping', sleep: 'falling_asleep', wake: 'waking' } as const
    enter(entry, next[kind], nowMs)
    if (kind === 'start' || kind === 'wake') entry.held = entry.settings.needs
    entry.isClosing = false
    entry.ending = undefined
    effects.push({ kind, engine: name })
  }

  function refuseWaiting(name: string, entry: EngineEntry, reason: string): void {
    const calls = [...entry.waiting]
    entry.waiting.clear()
    entry.requestedAtMs = undefined
    if (calls.length === 0) return
    for (const call of calls) call.state = 'over'
    effects.push({ kind: 'refuse', engine: name, calls, reason })
  }

  /** The times at which `pass` has something to do. */
  function due(atMs: number, nowMs: number): boolean {
    if (atMs > nowMs) nextMs = Math.min(nextMs, atMs)
    return atMs <= nowMs
  }

  /** Since when it is wanted; undefined: no call waits, and no operator has started it. */
  function wantedSince({ waiting, requestedAtMs }: EngineEntry): number | undefined {
    const [first] = waiting
    return first ? Math.min(first.arrivedAtMs, requestedAtMs ?? Infinity) : requestedAtMs
  }

  /** Ends what operators ended, what the catalog no longer has, and what has been idle for long enough. */
  function endUnwanted(nowMs: number): void {
    for (const [name, entry] of entries) {
      if (entry.isRemoved && !hasProcess(entry) && isIdle(entry)) {
        refuseWaiting(name, entry, 'it is no longer in the catalog')
        entries.delete(name)
        continue
      }
      if (!isIdle(entry) || (entry.state !== 'ready' && entry.state !== 'asleep')) continue
      const { stopAfterIdleMs } = entry.settings
      const isUnused = wantedSince(entry) === undefined && !entry.isPinned
      if (entry.isRemoved || entry.ending === 'stop') act('stop', name, entry, nowMs)
      else if (entry.ending === 'sleep' && entry.state === 'ready') act('sleep', name, entry, nowMs)
      else if (isUnused && due(entry.usedAtMs + stopAfterIdleMs, nowMs)) act('stop', name, entry, nowMs)
    }
  }

  /** Engines that wait for room, the one that has waited longest first. */
  function wanted(nowMs: number): readonly (readonly [string, EngineEntry])[] {
    return [...entries]
      .filter(([, entry]) => {
        if (wantedSince(entry) === undefined || entry.isRemoved) return false
        if (entry.state === 'failed') return due(entry.retryAtMs, nowMs)
        return entry.state !== 'ready' && entry.state !== 'starting' && entry.state !== 'waking'
      })
      .toSorted(([, one], [, other]) => wantedSince(one)! - wantedSince(other)!)
  }

  /**
   * Starts engines in their order. One that has to wait keeps its resources from all behind it, so that none of them
   * delays it.
   */
  function makeRoom(nowMs: number): void {
    const reserved = new Set<string>()
    for (const [name, entry] of wanted(nowMs)) {
      const { needs } = entry.settings
      const isBehind = needs.keys().some((resource) => reserved.has(resource))
      if (!isBehind && !hasTransition(entry) && tryStart(name, entry, nowMs)) continue
      for (const resource of needs.keys()) reserved.add(resource)
    }
  }

  /** It ends or falls asleep, so it cannot start yet. */
  function hasTransition({ state }: EngineEntry): boolean {
    return state === 'stopping' || state === 'falling_asleep'
  }

  /** False if it has to wait. */
  function tryStart(name: string, entry: EngineEntry, nowMs: number): boolean {
    const others = [...entries].filter(([other]) => other !== name)
    const plan = planRoom(
      entry.settings.needs,
      budgets,
      others.map(([, other]) => evictableOf(other)),
    )
    if (plan.kind === 'never') {
      refuseWaiting(name, entry, 'pinned engines leave no room for it')
      return true
    }
    if (plan.kind === 'fits') {
      act(entry.state === 'asleep' ? 'wake' : 'start', name, entry, nowMs)
      return true
    }
    if (plan.kind === 'evict')
      evict(
        plan.victims.map(({ index, kind }) => [...others[index]!, kind] as const),
        nowMs,
      )
    return false
  }

  function evictableOf(entry: EngineEntry): Evictable {
    const { settings, state, held, isPinned, usedAtMs, sinceMs } = entry
    const isPresent = state === 'ready' || state === 'asleep'
    return {
      held,
      // What it is about to give back.
      leaves: state === 'stopping' ? nothing : state === 'falling_asleep' ? settings.needsAsleep : undefined,
      isEvictable: isPresent && !isPinned,
      isPinned: isPinned && hasProcess(entry),
      asleep: state === 'ready' ? settings.needsAsleep : undefined,
      // Idle engines first, least recently used first; then the one whose turn has been longest.
      rank: isIdle(entry) ? [0, usedAtMs] : [1, sinceMs],
    }
  }

  /** They give way together: if only some can, they would leave early for an engine that still has to wait. */
  function evict(victims: readonly (readonly [string, EngineEntry, 'stop' | 'sleep'])[], nowMs: number): void {
    if (!victims.map(([, entry]) => due(protectedUntilMs(entry), nowMs)).every(Boolean)) return
    for (const [name, entry, kind] of victims) {
      if (isIdle(entry)) act(kind, name, entry, nowMs)
      else entry.isClosing = true
    }
  }

  function protectedUntilMs(entry: EngineEntry): number {
    if (entry.state === 'asleep') return 0
    return entry.sinceMs + (isIdle(entry) ? rules.minServiceMs : Math.max(rules.minServiceMs, rules.maxTurnMs))
  }

  function openReady(nowMs: number): void {
    for (const [name, entry] of entries) {
      if (!isOpen(entry) || entry.waiting.size === 0) continue
      const calls = [...entry.waiting]
      entry.waiting.clear()
      for (const call of calls) call.state = 'running'
      entry.running += calls.length
      entry.usedAtMs = nowMs
      effects.push({ kind: 'open', engine: name, calls })
    }
  }

  function isOpen({ state, isClosing, ending }: EngineEntry): boolean {
    return state === 'ready' && !isClosing && ending === undefined
  }

  function settle(nowMs: number): readonly Effect[] {
    nextMs = Infinity
    // Decided anew each time: the one that needed the place may have left.
    for (const entry of entries.values()) entry.isClosing = false
    endUnwanted(nowMs)
    makeRoom(nowMs)
    openReady(nowMs)
    const decided = effects
    effects = []
    return decided
  }

  return { entries, act, refuseWaiting, settle, nextMs: () => nextMs }
}
