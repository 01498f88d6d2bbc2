import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { EngineDescription, EngineRun } from '../../catalog/model.ts'
import type { AlarmClock } from '../../shared/clock.ts'
import type { Engine } from '../engine.ts'
import { engineLog } from './engine-log.ts'
import { answersWell, MAX_END_MS, type EngineProcess, type EngineProgram } from './engine-process.ts'
import { onDemandEngine, type WaitingCalls } from './on-demand-engine.ts'
import { memoryFigures, takesTooMuch, type MemoryFigure, type MemoryFigures } from './memory-figures.ts'
import { memoryOf } from './memory-use.ts'
import { takePort } from './port.ts'
import { endLeftovers, recordPath } from './process-record.ts'
import { ScheduledCall, usualRules, type Effect } from './decisions.ts'
import { openScheduler } from './scheduler.ts'
import { environmentOf, needsOf, settingsOf, withPort } from './run-settings.ts'
import { startTimes } from './start-times.ts'
import { statusOfUnit, wakingOf, type OnDemandStatus } from './status.ts'

/** Engines that Weir starts when they are asked for: the scheduler decides, and this carries it out. */
export interface OnDemandEngines {
  /** `open` connects to the engine each time it has started. */
  engine(lane: string, description: EngineDescription & { readonly run: EngineRun }, open: () => Engine): Engine
  list(): readonly OnDemandStatus[]
  order(lane: string, order: EngineOrder): void
  /** Ends all processes, and resolves when they are gone, or cannot be ended. */
  close(): Promise<void>
}

export const engineOrders = ['start', 'stop', 'sleep', 'wake', 'pin', 'unpin'] as const
export type EngineOrder = (typeof engineOrders)[number]

export interface OnDemandEvents {
  started(lane: string, ms: number): void
  /** `lastLines`: what it printed last. */
  failed(lane: string, reason: string, lastLines: readonly string[]): void
  stopped(lane: string): void
  /** It was killed, and some of its processes are still there. */
  lingers(lane: string): void
  /** It takes clearly more of its device than is kept for it. */
  tookTooMuch(lane: string, memory: MemoryFigure): void
  /** Engines of an earlier run of the service, which was killed together with what watched them. */
  leftoversEnded(names: readonly string[]): void
}

export interface OnDemandOptions {
  /** Logs and records are in a folder of it. */
  readonly dataDir: string
  readonly environment: NodeJS.ProcessEnv
  readonly clock: AlarmClock
  readonly events: OnDemandEvents
  startProcess(program: EngineProgram): EngineProcess
  /** The path on the server, if the catalog gives none. */
  readyPath(description: EngineDescription): string
}

const POLL_MS = 200
/** How long a process may take to end after it has closed its sockets, until that is known. */
const CRASH_MS = 5000 + MAX_END_MS
/** How often an engine is measured. */
const MEASURE_MS = 60_000
/** A sleeping engine moves its weights between memories. */
const SLEEP_MS = 120_000

/** One engine of the catalog. A changed one is another. */
interface Unit {
  readonly lane: string
  readonly description: EngineDescription & { readonly run: EngineRun }
  readonly open: () => Engine
  readonly calls: WaitingCalls
  process: EngineProcess | undefined
  upstream: Engine | undefined
  /** Why it is ended before it was ready. */
  failure: string | undefined
  isEnding: boolean
  /** Resolves when its memory is not being measured. */
  measured: Promise<void>
  measureAtMs: number
  isTooMuchKnown: boolean
  lastLines: readonly string[]
  whenGone: (() => void) | undefined
}

export function onDemandEngines(options: OnDemandOptions): OnDemandEngines {
  const { environment, clock, events } = options
  const directory = join(options.dataDir, 'engines')
  const units = new Map<string, Unit>()
  const budgets = new Map<string, number>()
  const scheduler = openScheduler(budgets, usualRules)
  const times = startTimes(join(directory, 'starts.json'))
  const figures = memoryFigures(join(directory, 'memory.json'))
  let cancelTimer: (() => void) | undefined
  let number = 0
  const undone: Effect[] = []
  let isApplying = false
  // Also if the catalog has none of them any more.
  const leftovers = endLeftovers(directory)
  if (leftovers.length > 0) events.leftoversEnded(leftovers)

  /** A call that ends while effects are carried out causes further ones, which are later in the order. */
  function apply(effects: readonly Effect[]): void {
    undone.push(...effects)
    if (isApplying) return
    isApplying = true
    try {
      for (let effect = undone.shift(); effect; effect = undone.shift()) carryOut(effect)
    } finally {
      isApplying = false
    }
    cancelTimer?.()
    const nextMs = scheduler.nextMs()
    const pass = (): void => apply(scheduler.pass(clock.monotonic()))
    cancelTimer = nextMs === Infinity ? undefined : clock.after(delayOf(nextMs - clock.monotonic()), pass)
    forgetRemoved()
  }

  function carryOut(effect: Effect): void {
    const unit = units.get(effect.engine)
    if (!unit) return
    switch (effect.kind) {
      case 'start':
        return void start(effect.engine, unit)
      case 'stop': {
        unit.isEnding = true
        disconnect(unit)
        const { process } = unit
        return void unit.measured.then(() => process?.stop())
      }
      case 'sleep':
      case 'wake':
        return void sleepOrWake(effect.engine, unit, effect.kind)
      case 'open':
        for (const call of effect.calls) unit.calls.get(call)?.go(unit.upstream)
        return
      case 'refuse':
        for (const call of effect.calls) unit.calls.get(call)?.refuse(effect.reason)
    }
  }

  async function start(name: string, unit: Unit): Promise<void> {
    const { run } = unit.description
    const startedAtMs = clock.monotonic()
    unit.isEnding = false
    unit.failure = undefined
    unit.measureAtMs = 0
    unit.isTooMuchKnown = false
    unit.lastLines = []
    const port = await takePort(run.port)
    if ('problem' in port) return ended(name, unit, port.problem)
    if (unit.isEnding) {
      port.release()
      return ended(name, unit, 'stopped')
    }
    const log = engineLog(join(directory, `${fileName(unit.lane)}.log`))
    const child = options.startProcess({
      command: run.command.map((argument) => withPort(argument, run.port)),
      env: environmentOf(run, environment),
      log,
      recordFile: recordPath(directory, `${fileName(unit.lane)}.${run.port}`),
    })
    unit.process = child
    let isGone = false
    void child.ended.then((reason) => {
      isGone = true
      port.release()
      unit.lastLines = log.lastLines()
      log.close()
      ended(name, unit, unit.failure ?? reason)
    })
    void child.lingers.then(() => events.lingers(unit.lane))
    const url = `http://127.0.0.1:${run.port}${run.readyPath ?? options.readyPath(unit.description)}`
    while (!(await answersWell(url, 'GET'))) {
      if (isGone || unit.isEnding) return
      if (clock.monotonic() - startedAtMs > run.startTimeoutMs) {
        unit.failure = `was not ready within ${Math.round(run.startTimeoutMs / 1000)} s`
        return child.stop()
      }
      await sleep(POLL_MS)
    }
    if (isGone || unit.isEnding) return
    const tookMs = clock.monotonic() - startedAtMs
    times.add(unit.lane, tookMs)
    events.started(unit.lane, tookMs)
    unit.upstream = unit.open()
    apply(scheduler.ready(name, clock.monotonic()))
  }

  function ended(name: string, unit: Unit, reason: string): void {
    unit.process = undefined
    disconnect(unit)
    if (unit.isEnding) events.stopped(unit.lane)
    else events.failed(unit.lane, reason, unit.lastLines)
    apply(scheduler.ended(name, reason, clock.monotonic()))
  }

  /** It may take its memory only with its first requests, and has most of it while it works. */
  function measure(name: string, unit: Unit): void {
    const nowMs = clock.monotonic()
    if (nowMs < unit.measureAtMs) return
    unit.measureAtMs = nowMs + MEASURE_MS
    unit.measured = newFigure(unit, figures, events).then((memory) => {
      if (memory) apply(scheduler.measured(name, needsOf(unit.description.run, memory), clock.monotonic()))
    })
  }

  /** vLLM's endpoints. Level 1 keeps the weights in the memory of the machine. */
  async function sleepOrWake(name: string, unit: Unit, kind: 'sleep' | 'wake'): Promise<void> {
    const path = kind === 'sleep' ? '/sleep?level=1' : '/wake_up'
    await unit.measured
    const startedAtMs = clock.monotonic()
    const isDone = await answersWell(`http://127.0.0.1:${unit.description.run.port}${path}`, 'POST', SLEEP_MS)
    const nowMs = clock.monotonic()
    if (isDone && kind === 'wake') times.add(wakingOf(unit.lane), nowMs - startedAtMs)
    if (!isDone) apply(scheduler.stuck(name, nowMs))
    else apply(kind === 'sleep' ? scheduler.asleep(name, nowMs) : scheduler.ready(name, nowMs))
  }

  function forgetRemoved(): void {
    for (const [name, unit] of units) {
      if (scheduler.status(name)) continue
      units.delete(name)
      unit.whenGone?.()
    }
  }

  /** The one that the catalog has. An earlier one of the same lane may still be ending. */
  function currentOf(lane: string): readonly [string, Unit] | undefined {
    return [...units].findLast(([, unit]) => unit.lane === lane && unit.whenGone === undefined)
  }

  const statusOf = ([name, unit]: readonly [string, Unit]): OnDemandStatus =>
    statusOfUnit(unit, scheduler.status(name)!, times, figures, clock.monotonic())

  return {
    engine(lane, description, open) {
      const { run } = description
      // Only where an engine is run, so that other installations have no folder for it.
      mkdirSync(directory, { recursive: true, mode: 0o700 })
      const name = `${lane} ${++number}`
      if (run.device) budgets.set(run.device.name, run.device.bytes)
      const unit = newUnit(lane, description, open)
      units.set(name, unit)
      const nowMs = clock.monotonic()
      apply(scheduler.add(name, settingsOf(run, figures.of(lane, run)), nowMs))
      if (run.isPreloaded) apply(scheduler.start(name, nowMs))
      return onDemandEngine({
        clock,
        calls: unit.calls,
        upstream: () => unit.upstream,
        start: () => (scheduler.status(name) ? statusOf([name, unit]) : undefined),
        newCall: () => new ScheduledCall(name, clock.monotonic()),
        arrive: (call) => apply(scheduler.arrive(call, clock.monotonic())),
        leave(call) {
          if (call.state === 'running') measure(name, unit)
          apply(scheduler.leave(call, clock.monotonic()))
        },
        crashed: () => hasEnded(unit),
        remove() {
          const { promise: gone, resolve } = Promise.withResolvers<void>()
          unit.whenGone = resolve
          apply(scheduler.remove(name, clock.monotonic()))
          return Promise.race([gone, unit.process?.lingers ?? gone])
        },
      })
    },
    list: () => [...units].filter(([, unit]) => unit.whenGone === undefined).map(statusOf),
    order(lane, order) {
      const current = currentOf(lane)
      if (!current) return
      const [name] = current
      const nowMs = clock.monotonic()
      if (order === 'start' || order === 'wake') apply(scheduler.start(name, nowMs))
      else if (order === 'stop') apply(scheduler.stop(name, nowMs))
      else if (order === 'sleep') apply(scheduler.sleep(name, nowMs))
      else apply(scheduler.pin(name, order === 'pin', nowMs))
    },
    async close() {
      cancelTimer?.()
      await Promise.all([...units.values()].map(endProcess))
    },
  }
}

function newUnit(lane: string, description: Unit['description'], open: () => Engine): Unit {
  return {
    lane,
    description,
    open,
    calls: new Map(),
    process: undefined,
    upstream: undefined,
    failure: undefined,
    isEnding: false,
    measured: Promise.resolve(),
    measureAtMs: 0,
    isTooMuchKnown: false,
    lastLines: [],
    whenGone: undefined,
  }
}

async function endProcess({ process }: Unit): Promise<void> {
  process?.stop()
  await Promise.race([process?.ended, process?.lingers])
}

/** Its server may refuse connections as soon as it is asked to end, which is no failure. */
function disconnect(unit: Unit): void {
  void unit.upstream?.close()
  unit.upstream = undefined
}

/** Measures what it takes of its device. undefined: what is kept for it does not change. */
async function newFigure(
  unit: Unit,
  figures: MemoryFigures,
  events: Pick<OnDemandEvents, 'tookTooMuch'>,
): Promise<MemoryFigure | undefined> {
  const { lane, description, process } = unit
  const { run } = description
  const bytes = run.device && process && (await memoryOf(process.group))
  if (bytes === undefined) return undefined
  const isMore = figures.add(lane, run, bytes)
  const memory = figures.of(lane, run)!
  const isTooMuch = takesTooMuch(memory)
  if (isTooMuch && !unit.isTooMuchKnown) events.tookTooMuch(lane, memory)
  unit.isTooMuchKnown = isTooMuch
  return isMore && memory.source === 'measured' ? memory : undefined
}

/** Its process ends a moment after its sockets. */
async function hasEnded({ process }: Unit): Promise<boolean> {
  if (!process) return true
  return Promise.race([process.ended.then(() => true), sleep(CRASH_MS, false, { ref: false })])
}

function fileName(lane: string): string {
  return lane.replaceAll('/', '--')
}

/** A timer takes at most this long. */
function delayOf(ms: number): number {
  return Math.min(Math.max(0, Math.ceil(ms)), 2 ** 31 - 1)
}
