import {
  ScheduledCall,
  type Effect,
  type EngineSettings,
  type Rules,
} from '../../../src/engines/on-demand/decisions.ts'
import { seededRandom } from '../../../src/shared/seeded-random.ts'
import type { OpenScheduler } from './world.ts'

/** Eight models that do not fit together, and calls to them. */
export interface Trace {
  readonly models: readonly { readonly settings: EngineSettings; readonly startMs: number }[]
  readonly calls: readonly { readonly model: number; readonly atMs: number; readonly durationMs: number }[]
}

const stopMs = 1000
const device = 'gpu0'
export const budgets: ReadonlyMap<string, number> = new Map([[device, 80]])

/** Users begin conversations with a model, some models more often than others, and write again when they have read. */
export function traceOf(seed: number, conversations: number, meanPauseMs: number): Trace {
  const random = seededRandom(seed)
  const exponential = (mean: number): number => -mean * Math.log(1 - random())
  const memory = [8, 12, 16, 20, 24, 30, 36, 44]
  const models = memory.map((bytes) => ({
    settings: {
      needs: new Map([[device, bytes]]),
      needsAsleep: undefined,
      stopAfterIdleMs: Infinity,
      isPinned: false,
    },
    startMs: 2000 + bytes * 400,
  }))
  const popular = models.map((_, index) => index).toSorted(() => random() - 0.5)
  const calls = []
  let beginsMs = 0
  for (let conversation = 0; conversation < conversations; conversation++) {
    beginsMs += exponential(meanPauseMs)
    const model = popular[Math.floor(random() ** 2 * popular.length)]!
    let atMs = beginsMs
    for (let turn = 1 + Math.floor(exponential(6)); turn > 0; turn--) {
      const durationMs = 1000 + exponential(5000)
      calls.push({ model, atMs, durationMs })
      atMs += durationMs + exponential(15_000)
    }
  }
  return { models, calls: calls.toSorted((one, other) => one.atMs - other.atMs) }
}

/** The mean wait of all calls, in milliseconds. `observe` learns what happens next before the scheduler decides. */
export function meanWaitMs(
  openScheduler: OpenScheduler,
  rules: Rules,
  { models, calls }: Trace,
  observe: (nowMs: number) => void = () => {},
): number {
  const scheduler = openScheduler(budgets, rules)
  const events: { readonly atMs: number; readonly happen: () => void }[] = []
  const durations = new Map<ScheduledCall, number>()
  let nowMs = 0
  let waitedMs = 0

  function insert(atMs: number, happen: () => void): void {
    let index = events.length
    while (index > 0 && events[index - 1]!.atMs <= atMs) index--
    events.splice(index, 0, { atMs, happen })
  }

  function apply(effects: readonly Effect[]): void {
    for (const effect of effects) {
      const name = effect.engine
      if (effect.kind === 'start') {
        insert(nowMs + models[Number(name)]!.startMs, () => apply(scheduler.ready(name, nowMs)))
      } else if (effect.kind === 'stop') insert(nowMs + stopMs, () => apply(scheduler.ended(name, '', nowMs)))
      else if (effect.kind === 'open') {
        for (const call of effect.calls) {
          waitedMs += nowMs - call.arrivedAtMs
          insert(nowMs + durations.get(call)!, () => apply(scheduler.leave(call, nowMs)))
        }
      }
    }
  }

  models.forEach(({ settings }, index) => scheduler.add(String(index), settings, 0))
  for (const { model, atMs, durationMs } of calls) {
    insert(atMs, () => {
      const call = new ScheduledCall(String(model), nowMs)
      durations.set(call, durationMs)
      apply(scheduler.arrive(call, nowMs))
    })
  }
  for (;;) {
    const next = events.at(-1)
    const timerMs = scheduler.nextMs()
    if (!next && timerMs === Infinity) return waitedMs / calls.length
    nowMs = Math.max(nowMs, Math.min(next?.atMs ?? Infinity, timerMs))
    observe(nowMs)
    if (next && next.atMs <= timerMs) {
      events.pop()
      next.happen()
    } else apply(scheduler.pass(nowMs))
  }
}
