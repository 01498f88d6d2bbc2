import type { Amounts } from '../../../src/engines/on-demand/room.ts'
import {
  ScheduledCall,
  type Effect,
  type EngineSettings,
  type Rules,
} from '../../../src/engines/on-demand/decisions.ts'
import type { Scheduler } from '../../../src/engines/on-demand/scheduler.ts'
import { backoffMs } from '../../../src/shared/backoff.ts'
import { seededRandom } from '../../../src/shared/seeded-random.ts'
import { Violation, Witness, type Seen } from './witness.ts'

export type OpenScheduler = (budgets: Amounts, rules: Rules) => Scheduler

/** How often each event occurred. A simulation in which the rare events never occur proves nothing. */
export interface Tally {
  calls: number
  steps: number
  opened: number
  refused: number
  cancelled: number
  started: number
  failedStarts: number
  crashes: number
  stopped: number
  slept: number
  woken: number
  stuck: number
  pinned: number
  removed: number
  measured: number
}

const rules: Rules = { minServiceMs: 2000, maxTurnMs: 8000, healthyMs: 10_000, firstBackoffMs: 500, maxBackoffMs: 4000 }
const maxCallMs = 6000
const maxStartMs = 5000
const maxStopMs = 1500
const callsPerEpisode = 800

/** What one engine may take from the next in line. */
const turnMs = rules.maxTurnMs + maxCallMs + 2 * maxStopMs + maxStartMs

/** Runs schedulers, one per episode, under random calls, faults and operators, in virtual time. */
export function simulateEngines(openScheduler: OpenScheduler, seed: number, calls: number): Tally {
  const tally: Tally = {
    calls: 0,
    steps: 0,
    opened: 0,
    refused: 0,
    cancelled: 0,
    started: 0,
    failedStarts: 0,
    crashes: 0,
    stopped: 0,
    slept: 0,
    woken: 0,
    stuck: 0,
    pinned: 0,
    removed: 0,
    measured: 0,
  }
  for (let episode = 0; tally.calls < calls; episode++) {
    try {
      runEpisode(openScheduler, seededRandom(seed + episode), tally, episode % 4 === 3)
    } catch (error) {
      if (error instanceof Violation) error.message += ` (seed ${seed + episode})`
      throw error
    }
  }
  return tally
}

/** `measures`: figures for memory change. */
function runEpisode(openScheduler: OpenScheduler, random: () => number, tally: Tally, measures: boolean): void {
  const below = (end: number): number => Math.floor(random() * end)
  const names = Array.from({ length: 2 + below(7) }, (_, index) => `model-${index}`)
  const budgets = new Map([
    ['gpu0', 100],
    ['gpu1', 60],
  ])
  const faultRate = below(3) === 0 ? 0 : 0.08
  // Each of the others may take a turn. With faults, each may also fail in it, and again after its backoff.
  const maxWaitMs = names.length * (faultRate === 0 ? turnMs : 2 * (turnMs + rules.maxBackoffMs))
  const witness = new Witness(budgets, rules, maxWaitMs)
  const scheduler = openScheduler(budgets, rules)
  const events: { readonly atMs: number; readonly happen: () => void }[] = []
  let nowMs = 0
  const pace = 100 + below(1500)

  function after(delayMs: number, happen: () => void): void {
    insert(nowMs + delayMs, happen)
  }

  /** The next event is the last of the list; of events at the same time, the one that was planned first. */
  function insert(atMs: number, happen: () => void): void {
    let index = events.length
    while (index > 0 && events[index - 1]!.atMs <= atMs) index--
    events.splice(index, 0, { atMs, happen })
  }

  function settingsOf(): EngineSettings {
    const device = below(4) === 0 ? 'gpu1' : 'gpu0'
    const memory = 5 + below(device === 'gpu0' ? 90 : 50)
    const needs = new Map([[device, memory]])
    if (below(6) === 0) needs.set('group:small', 1)
    return {
      needs,
      needsAsleep: below(3) === 0 ? new Map([[device, below(4)]]) : undefined,
      stopAfterIdleMs: below(3) === 0 ? Infinity : 3000 + below(20_000),
      isPinned: below(25) === 0,
    }
  }

  function apply(effects: readonly Effect[]): void {
    tally.steps++
    for (const effect of effects) {
      witness.take(effect, nowMs)
      carryOut(effect)
    }
    witness.check(nowMs)
  }

  function carryOut(effect: Effect): void {
    const name = effect.engine
    const seen = witness.of(name)
    if (effect.kind === 'start') {
      tally.started++
      const fails = random() < faultRate
      after(1 + below(maxStartMs), () => {
        if (seen.process !== 'starting') return
        if (fails) {
          tally.failedStarts++
          crash(name, seen)
        } else becomeReady(name, seen)
      })
    } else if (effect.kind === 'stop') {
      tally.stopped++
      after(1 + below(maxStopMs), () => {
        seen.process = 'none'
        apply(scheduler.ended(name, 'stopped', nowMs))
      })
    } else if (effect.kind === 'sleep' || effect.kind === 'wake') {
      const [from, count] =
        effect.kind === 'sleep' ? (['falling_asleep', 'slept'] as const) : (['waking', 'woken'] as const)
      tally[count]++
      const fails = random() < faultRate
      after(1 + below(maxStopMs), () => {
        if (seen.process !== from) return
        if (fails) {
          tally.stuck++
          apply(scheduler.stuck(name, nowMs))
        } else if (from === 'waking') becomeReady(name, seen)
        else {
          seen.process = 'asleep'
          seen.isSmall = true
          apply(scheduler.asleep(name, nowMs))
        }
      })
    } else if (effect.kind === 'open') {
      tally.opened += effect.calls.length
      for (const call of effect.calls) after(1 + below(maxCallMs), () => leave(call, seen))
    } else if (effect.kind === 'refuse') tally.refused += effect.calls.length
  }

  function becomeReady(name: string, seen: Seen): void {
    seen.process = 'ready'
    seen.readyAtMs = seen.idleSinceMs = nowMs
    witness.requested.delete(name)
    apply(scheduler.ready(name, nowMs))
    if (random() < faultRate) {
      const readyAtMs = nowMs
      after(below(20_000), () => {
        const isSameRun = seen.process === 'ready' && seen.readyAtMs === readyAtMs
        if (!isSameRun) return
        tally.crashes++
        crash(name, seen)
      })
    }
  }

  function crash(name: string, seen: Seen): void {
    const isHealthy = seen.process === 'ready' && nowMs - seen.readyAtMs >= rules.healthyMs
    seen.failures = isHealthy ? 1 : seen.failures + 1
    seen.backoffUntilMs = nowMs + backoffMs(seen.failures, rules.firstBackoffMs, rules.maxBackoffMs)
    if (seen.process === 'starting' || seen.process === 'waking') seen.refusesUntilMs = seen.backoffUntilMs
    seen.process = 'none'
    apply(scheduler.ended(name, 'crashed', nowMs))
    // Its calls break off.
    for (const call of seen.running) leave(call, seen)
  }

  function leave(call: ScheduledCall, seen: Seen): void {
    const hasRun = seen.running.delete(call)
    const wasThere = hasRun || seen.waiting.delete(call)
    if (seen.running.size === 0) seen.idleSinceMs = nowMs
    if (hasRun && seen.process === 'ready' && measures && below(10) === 0) measure(call.engine, seen)
    if (wasThere) apply(scheduler.leave(call, nowMs))
  }

  /** The figure was too large, as it is before the first one, or too small. */
  function measure(name: string, seen: Seen): void {
    const [device = '', memory = 0] = [...seen.settings.needs].find(([resource]) => budgets.has(resource)) ?? []
    const measured = Math.min(Math.ceil(memory * (0.3 + random())), budgets.get(device) ?? 0)
    tally.measured++
    seen.settings = { ...seen.settings, needs: new Map([...seen.settings.needs, [device, measured]]) }
    apply(scheduler.measured(name, seen.settings.needs, nowMs))
  }

  function arrive(name: string): void {
    const seen = witness.of(name)
    if (seen.isRemoved) return
    tally.calls++
    const call = new ScheduledCall(name, nowMs)
    seen.waiting.add(call)
    apply(scheduler.arrive(call, nowMs))
    if (random() < 0.05) {
      after(below(5000), () => {
        if (!seen.waiting.has(call)) return
        tally.cancelled++
        leave(call, seen)
      })
    }
  }

  function operate(name: string): void {
    const seen = witness.of(name)
    const action = below(7)
    if (action === 0) {
      // An operator does not wait for the backoff.
      if (!seen.isRemoved) {
        seen.backoffUntilMs = -1
        witness.requested.add(name)
        apply(scheduler.start(name, nowMs))
      }
    } else if (action === 1) {
      seen.isEndAllowed = true
      apply(scheduler.stop(name, nowMs))
      if (seen.process === 'none') seen.isEndAllowed = false
    } else if (action === 2) {
      if (seen.process === 'ready') seen.isEndAllowed = true
      apply(scheduler.sleep(name, nowMs))
    } else if (action === 3 && below(4) === 0) {
      tally.removed++
      seen.isRemoved = seen.isEndAllowed = true
      apply(scheduler.remove(name, nowMs))
    } else {
      tally.pinned++
      seen.isPinned = action > 5
      apply(scheduler.pin(name, seen.isPinned, nowMs))
    }
  }

  for (const name of names) {
    const settings = settingsOf()
    witness.see(name, settings)
    apply(scheduler.add(name, settings, nowMs))
  }
  const favourites = names.slice(0, 1 + below(names.length))
  let timeMs = 0
  for (let index = 0; index < callsPerEpisode; index++) {
    timeMs += below(pace)
    const from = random() < 0.8 ? favourites : names
    const name = from[below(from.length)]!
    insert(timeMs, () => arrive(name))
    if (faultRate > 0 && random() < 0.05) insert(timeMs, () => operate(name))
  }

  for (;;) {
    const next = events.at(-1)
    const timerMs = scheduler.nextMs()
    if (!next && timerMs === Infinity) break
    if (next && next.atMs <= timerMs) {
      events.pop()
      nowMs = next.atMs
      next.happen()
    } else {
      nowMs = Math.max(nowMs, timerMs)
      apply(scheduler.pass(nowMs))
    }
  }
  witness.finish()
}
