import type { Amounts } from '../../../src/engines/on-demand/room.ts'
import type { ScheduledCall, EngineSettings, Effect, Rules } from '../../../src/engines/on-demand/decisions.ts'

export type Invariant = 'E1' | 'E2' | 'E3' | 'E4' | 'E5' | 'E6' | 'E7' | 'E8' | 'E9' | 'E10'

export class Violation extends Error {
  readonly invariant: Invariant

  constructor(invariant: Invariant, message: string) {
    super(`${invariant}: ${message}`)
    this.invariant = invariant
  }
}

/** An engine as seen from outside the scheduler. Nothing here is read from the scheduler. */
export interface Seen {
  /** `needs` changes when it is measured. */
  settings: EngineSettings
  process: 'none' | 'starting' | 'ready' | 'falling_asleep' | 'asleep' | 'waking' | 'stopping'
  /** Whether it has only what it needs asleep. One that ends from its sleep does not take more again. */
  isSmall: boolean
  readyAtMs: number
  idleSinceMs: number
  isPinned: boolean
  /** An operator or the catalog wants its end. */
  isEndAllowed: boolean
  isRemoved: boolean
  /** Until when calls may be refused, because a start has failed. */
  refusesUntilMs: number
  /** No start is expected before, because the engine crashed. */
  backoffUntilMs: number
  failures: number
  readonly waiting: Set<ScheduledCall>
  readonly running: Set<ScheduledCall>
}

const nothing: Amounts = new Map()

/** Checks what the scheduler does against the invariants of design.md. */
export class Witness {
  readonly engines = new Map<string, Seen>()
  /** Engines that an operator has started. */
  readonly requested = new Set<string>()
  readonly #budgets: Amounts
  readonly #rules: Rules
  readonly #maxWaitMs: number

  constructor(budgets: Amounts, rules: Rules, maxWaitMs: number) {
    this.#budgets = budgets
    this.#rules = rules
    this.#maxWaitMs = maxWaitMs
  }

  see(name: string, settings: EngineSettings): void {
    this.engines.set(name, {
      settings,
      process: 'none',
      isSmall: false,
      readyAtMs: 0,
      idleSinceMs: 0,
      isPinned: settings.isPinned,
      isEndAllowed: false,
      isRemoved: false,
      refusesUntilMs: -1,
      backoffUntilMs: -1,
      failures: 0,
      waiting: new Set(),
      running: new Set(),
    })
  }

  of(name: string): Seen {
    return this.engines.get(name)!
  }

  take(effect: Effect, nowMs: number): void {
    const seen = this.of(effect.engine)
    const name = effect.engine
    switch (effect.kind) {
      case 'start':
        this.#require('E7', seen.process === 'none', `${name} is started twice`)
        this.#require('E7', !seen.isRemoved, `${name} is started after its removal`)
        this.#inOrder(name, seen, nowMs)
        seen.process = 'starting'
        seen.isSmall = false
        seen.isEndAllowed = false
        this.#fits(name, seen)
        break
      case 'wake':
        this.#require('E7', seen.process === 'asleep', `${name} is woken while ${seen.process}`)
        this.#inOrder(name, seen, nowMs)
        seen.process = 'waking'
        seen.isSmall = false
        seen.isEndAllowed = false
        this.#fits(name, seen)
        break
      case 'sleep':
        this.#require('E7', seen.process === 'ready', `${name} is to sleep while ${seen.process}`)
        this.#require('E7', seen.settings.needsAsleep !== undefined, `${name} cannot sleep`)
        this.#mayEnd(name, seen, nowMs)
        seen.process = 'falling_asleep'
        break
      case 'stop':
        this.#require('E7', seen.process !== 'none' && seen.process !== 'stopping', `${name} is stopped twice`)
        this.#mayEnd(name, seen, nowMs)
        seen.process = 'stopping'
        break
      case 'open':
        this.#require('E7', seen.process === 'ready', `${name} gets calls while ${seen.process}`)
        this.#open(name, seen, effect.calls)
        break
      case 'refuse':
        this.#mayRefuse(name, seen, nowMs)
        for (const call of effect.calls) {
          this.#require('E9', seen.waiting.delete(call), `a call of ${name} is refused that does not wait`)
        }
    }
  }

  /** After every event. */
  check(nowMs: number): void {
    for (const [name, seen] of this.engines) {
      const [first] = seen.waiting
      if (!first) continue
      const waitedMs = nowMs - first.arrivedAtMs
      this.#require('E6', waitedMs <= this.#maxWaitMs, `a call of ${name} has waited ${waitedMs} ms`)
      const isStartable = seen.process === 'none' && nowMs >= seen.backoffUntilMs && this.#hasRoomAlone(name, seen)
      this.#require('E8', !isStartable, `${name} is wanted, has room, and is not started`)
    }
  }

  /** When nothing happens any more. */
  finish(): void {
    for (const [name, { waiting }] of this.engines) {
      this.#require('E6', waiting.size === 0, `${waiting.size} calls of ${name} were never served`)
    }
  }

  /** One that runs already may turn out to take more, but nothing starts beside it then. */
  #fits(name: string, { settings }: Seen): void {
    for (const resource of settings.needs.keys()) {
      const used = [...this.engines.values()].reduce((sum, seen) => sum + (heldBy(seen).get(resource) ?? 0), 0)
      this.#require('E1', used <= this.#budget(resource), `${name} starts, and ${used} of ${resource} are in use`)
    }
  }

  #mayEnd(name: string, seen: Seen, nowMs: number): void {
    this.#require('E2', seen.running.size === 0, `${name} ends with ${seen.running.size} calls`)
    if (seen.isEndAllowed || seen.process === 'waking' || seen.process === 'falling_asleep') return
    this.#require('E3', !seen.isPinned, `${name} is pinned, and ends`)
    const isIdleForLong = nowMs - seen.idleSinceMs >= seen.settings.stopAfterIdleMs
    if (seen.process !== 'ready' || isIdleForLong) return
    const servedMs = nowMs - seen.readyAtMs
    this.#require('E4', servedMs >= this.#rules.minServiceMs, `${name} ends ${servedMs} ms after it became ready`)
  }

  /** No engine with the same resources has waited longer. What operators start may be first. */
  #inOrder(name: string, { settings, waiting }: Seen, nowMs: number): void {
    const [first] = waiting
    if (!first) return
    for (const [other, it] of this.engines) {
      const [earlier] = it.waiting
      const isWaiting = it.process === 'none' || it.process === 'asleep'
      if (!earlier || !isWaiting || it.isRemoved || nowMs < it.backoffUntilMs || other === name) continue
      const isShared = settings.needs.keys().some((resource) => it.settings.needs.has(resource))
      const isLate = isShared && earlier.arrivedAtMs < first.arrivedAtMs && !this.requested.has(name)
      this.#require('E10', !isLate, `${name} is started before ${other}, which has waited longer`)
    }
  }

  #open(name: string, seen: Seen, calls: readonly ScheduledCall[]): void {
    const [...waiting] = seen.waiting
    calls.forEach((call, index) => {
      this.#require('E5', waiting[index] === call, `a call of ${name} overtakes another`)
      seen.waiting.delete(call)
      seen.running.add(call)
    })
  }

  #mayRefuse(name: string, seen: Seen, nowMs: number): void {
    const isBesidePinned = (resource: string, need: number): boolean => {
      const pinned = [...this.engines.values()].filter((it) => it.isPinned && it !== seen)
      const used = pinned.reduce((sum, it) => sum + (heldBy(it).get(resource) ?? 0), 0)
      return used + need > this.#budget(resource)
    }
    const isWithoutRoom = seen.settings.needs.entries().some(([resource, need]) => isBesidePinned(resource, need))
    const isAllowed = nowMs <= seen.refusesUntilMs || seen.isEndAllowed || seen.isRemoved || isWithoutRoom
    this.#require('E9', isAllowed, `calls of ${name} are refused without a reason`)
  }

  /** Whether it fits now, and no other engine that waits wants the same. */
  #hasRoomAlone(name: string, { settings }: Seen): boolean {
    return settings.needs.entries().every(([resource, need]) => {
      const others = [...this.engines].filter(([other]) => other !== name).map(([, it]) => it)
      const used = others.reduce((sum, it) => sum + (heldBy(it).get(resource) ?? 0), 0)
      const isWanted = others.some((it) => it.settings.needs.has(resource) && isWaiting(it))
      return !isWanted && used + need <= this.#budget(resource)
    })
  }

  #budget(resource: string): number {
    return this.#budgets.get(resource) ?? 1
  }

  #require(invariant: Invariant, isKept: boolean, message: string): void {
    if (!isKept) throw new Violation(invariant, message)
  }
}

function isWaiting({ waiting, process }: Seen): boolean {
  return waiting.size > 0 || process === 'starting' || process === 'waking'
}

function heldBy({ process, settings, isSmall }: Seen): Amounts {
  if (process === 'none') return nothing
  return isSmall ? (settings.needsAsleep ?? nothing) : settings.needs
}
