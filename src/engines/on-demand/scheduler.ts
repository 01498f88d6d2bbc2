/**
 * Decides which engines run, and nothing else: no clock, no I/O, no randomness. The driver passes the time with each
 * event and carries out the effects. design.md explains the rules.
 */

import { backoffMs } from '../../shared/backoff.ts'
import {
  enter,
  hasProcess,
  nothing,
  openDecisions,
  type Effect,
  type EngineSettings,
  type EngineEntry,
  type Rules,
  type RunState,
  type ScheduledCall,
} from './decisions.ts'
import type { Amounts, Budgets } from './room.ts'

export interface EngineStatus {
  readonly state: RunState
  readonly sinceMs: number
  readonly waiting: number
  readonly running: number
  readonly isPinned: boolean
  /** What it takes of each resource now. */
  readonly held: Amounts
  /** Why the last start failed, or the engine ended. */
  readonly problem: string | undefined
}

export interface Scheduler {
  /** A name may be used again once `status` no longer has it. */
  add(name: string, settings: EngineSettings, nowMs: number): readonly Effect[]
  /** The engine ends when its calls have ended, and is forgotten when its process is gone. */
  remove(name: string, nowMs: number): readonly Effect[]
  arrive(call: ScheduledCall, nowMs: number): readonly Effect[]
  /** The call has ended, or its caller has left. */
  leave(call: ScheduledCall, nowMs: number): readonly Effect[]
  /** The process answers: it has started, or is awake. */
  ready(name: string, nowMs: number): readonly Effect[]
  asleep(name: string, nowMs: number): readonly Effect[]
  /** It cannot sleep or wake up, so it is stopped. */
  stuck(name: string, nowMs: number): readonly Effect[]
  /** What it takes has been measured while it served. */
  measured(name: string, needs: Amounts, nowMs: number): readonly Effect[]
  /** The process is gone. */
  ended(name: string, reason: string, nowMs: number): readonly Effect[]
  /** For `nextMs`. */
  pass(nowMs: number): readonly Effect[]
  start(name: string, nowMs: number): readonly Effect[]
  stop(name: string, nowMs: number): readonly Effect[]
  sleep(name: string, nowMs: number): readonly Effect[]
  pin(name: string, isPinned: boolean, nowMs: number): readonly Effect[]
  status(name: string): EngineStatus | undefined
  /** When `pass` is due; Infinity: not before the next event. */
  nextMs(): number
}

export function openScheduler(budgets: Budgets, rules: Rules): Scheduler {
  const { entries, act, refuseWaiting, settle, nextMs } = openDecisions(budgets, rules)

  function change(name: string, nowMs: number, apply: (entry: EngineEntry) => void): readonly Effect[] {
    const entry = entries.get(name)
    if (entry) apply(entry)
    return settle(nowMs)
  }

  function processEnded(name: string, entry: EngineEntry, reason: string, nowMs: number): void {
    const { state, sinceMs } = entry
    entry.held = nothing
    if (state === 'stopping') return enter(entry, 'stopped', nowMs)
    const wasHealthy = state === 'asleep' || (state === 'ready' && nowMs - sinceMs >= rules.healthyMs)
    entry.failures = wasHealthy ? 1 : entry.failures + 1
    entry.retryAtMs = nowMs + backoffMs(entry.failures, rules.firstBackoffMs, rules.maxBackoffMs)
    entry.problem = reason
    entry.hasFailedToStart = state === 'starting' || state === 'waking'
    enter(entry, 'failed', nowMs)
    if (entry.hasFailedToStart) refuseWaiting(name, entry, reason)
  }

  return {
    add(name, settings, nowMs) {
      if (entries.has(name)) throw new Error(`the engine ${name} is already there`)
      entries.set(name, {
        settings,
        isPinned: settings.isPinned,
        state: 'stopped',
        sinceMs: nowMs,
        held: nothing,
        waiting: new Set(),
        running: 0,
        requestedAtMs: undefined,
        ending: undefined,
        isRemoved: false,
        isClosing: false,
        usedAtMs: nowMs,
        failures: 0,
        retryAtMs: 0,
        problem: undefined,
        hasFailedToStart: false,
      })
      return settle(nowMs)
    },
    remove: (name, nowMs) =>
      change(name, nowMs, (entry) => {
        entry.isRemoved = true
        refuseWaiting(name, entry, 'it is no longer in the catalog')
        if (entry.state === 'starting' || entry.state === 'waking') act('stop', name, entry, nowMs)
      }),
    arrive: (call, nowMs) =>
      change(call.engine, nowMs, (entry) => {
        entry.waiting.add(call)
        const isBackingOff = entry.state === 'failed' && entry.hasFailedToStart && entry.retryAtMs > nowMs
        if (isBackingOff) refuseWaiting(call.engine, entry, entry.problem ?? '')
      }),
    leave: (call, nowMs) =>
      change(call.engine, nowMs, (entry) => {
        if (call.state === 'running') {
          entry.running -= 1
          entry.usedAtMs = nowMs
        }
        entry.waiting.delete(call)
        call.state = 'over'
      }),
    ready: (name, nowMs) =>
      change(name, nowMs, (entry) => {
        if (entry.state !== 'starting' && entry.state !== 'waking') return
        entry.requestedAtMs = undefined
        entry.usedAtMs = nowMs
        enter(entry, 'ready', nowMs)
      }),
    asleep: (name, nowMs) =>
      change(name, nowMs, (entry) => {
        if (entry.state !== 'falling_asleep') return
        entry.held = entry.settings.needsAsleep ?? nothing
        enter(entry, 'asleep', nowMs)
      }),
    stuck: (name, nowMs) =>
      change(name, nowMs, (entry) => {
        if (entry.state === 'falling_asleep' || entry.state === 'waking') act('stop', name, entry, nowMs)
      }),
    measured: (name, needs, nowMs) =>
      change(name, nowMs, (entry) => {
        entry.settings = { ...entry.settings, needs }
        if (entry.state === 'ready') entry.held = needs
      }),
    ended: (name, reason, nowMs) =>
      change(name, nowMs, (entry) => {
        if (hasProcess(entry)) processEnded(name, entry, reason, nowMs)
      }),
    pass: settle,
    start: (name, nowMs) =>
      change(name, nowMs, (entry) => {
        // An operator does not wait for the backoff.
        entry.retryAtMs = nowMs
        if (entry.state !== 'ready') entry.requestedAtMs ??= nowMs
      }),
    stop: (name, nowMs) =>
      change(name, nowMs, (entry) => {
        refuseWaiting(name, entry, 'an operator stopped it')
        if (entry.state === 'starting' || entry.state === 'waking') act('stop', name, entry, nowMs)
        else entry.ending = 'stop'
      }),
    sleep: (name, nowMs) =>
      change(name, nowMs, (entry) => {
        if (entry.settings.needsAsleep && entry.state === 'ready') entry.ending = 'sleep'
      }),
    pin: (name, isPinned, nowMs) =>
      change(name, nowMs, (entry) => {
        entry.isPinned = isPinned
      }),
    status(name) {
      const entry = entries.get(name)
      if (!entry) return undefined
      const { state, sinceMs, running, isPinned, held, problem } = entry
      return { state, sinceMs, waiting: entry.waiting.size, running, isPinned, held, problem }
    },
    nextMs,
  }
}
