import type { EngineDescription, EngineRun } from '../../catalog/model.ts'
import type { RunState } from './decisions.ts'
import type { MemoryFigure, MemoryFigures } from './memory-figures.ts'
import type { EngineStatus } from './scheduler.ts'
import type { StartTimes } from './start-times.ts'

export interface OnDemandStatus {
  readonly lane: string
  readonly state: RunState
  readonly waiting: number
  readonly running: number
  readonly isPinned: boolean
  readonly canSleep: boolean
  readonly device: string | undefined
  readonly deviceBytes: number | undefined
  /** What it takes of its device now. */
  readonly bytes: number
  /** undefined: it has no device. */
  readonly memory: MemoryFigure | undefined
  /** How long the latest starts took. */
  readonly startsMs: readonly number[]
  /** When it is expected to be ready, from now; undefined: unknown, or it need not start. */
  readonly readyInMs: number | undefined
  /** Why it last failed. */
  readonly problem: string | undefined
  /** What it printed last before it failed. */
  readonly lastLines: readonly string[]
}

interface DescribedUnit {
  readonly lane: string
  readonly description: EngineDescription & { readonly run: EngineRun }
  readonly lastLines: readonly string[]
}

/** What is known of an engine, from the scheduler and from its earlier starts. */
export function statusOfUnit(
  { lane, description, lastLines }: DescribedUnit,
  status: EngineStatus,
  times: StartTimes,
  figures: MemoryFigures,
  nowMs: number,
): OnDemandStatus {
  const { run } = description
  const isWaking = status.state === 'asleep' || status.state === 'waking'
  const expectedMs = times.expectedMs(isWaking ? wakingOf(lane) : lane)
  const isStarting = status.state === 'starting' || status.state === 'waking'
  const passedMs = isStarting ? nowMs - status.sinceMs : 0
  return {
    lane,
    state: status.state,
    waiting: status.waiting,
    running: status.running,
    isPinned: status.isPinned,
    canSleep: run.sleep !== undefined,
    device: run.device?.name,
    deviceBytes: run.device?.bytes,
    bytes: (run.device && status.held.get(run.device.name)) ?? 0,
    memory: figures.of(lane, run),
    startsMs: times.of(lane),
    readyInMs:
      expectedMs === undefined || status.state === 'ready' ? undefined : Math.max(0, Math.round(expectedMs - passedMs)),
    problem: status.problem,
    lastLines,
  }
}

/** The name for its wake times: no lane has a space before its slash. */
export const wakingOf = (lane: string): string => `waking ${lane}`
