import { hash } from 'node:crypto'
import type { EngineRun } from '../../catalog/model.ts'
import { learnedFile } from './learned-file.ts'

/** What engines take of their devices: what the catalog says, or else the most that was measured. */
export interface MemoryFigures {
  /** undefined: it has no device. */
  of(lane: string, run: EngineRun): MemoryFigure | undefined
  /** True if this is more than was known. */
  add(lane: string, run: EngineRun, bytes: number): boolean
}

/** `unmeasured`: it has the device to itself until it is measured. */
export const memorySources = ['configured', 'measured', 'unmeasured'] as const

export interface MemoryFigure {
  /** What is kept for it on its device. */
  readonly bytes: number
  readonly source: (typeof memorySources)[number]
  /** The most that it has taken; undefined: it has not been measured. */
  readonly measuredBytes: number | undefined
}

/** Servers allocate a little more than their options say. */
const TOLERANCE = 1.1

export function memoryFigures(path: string): MemoryFigures {
  const measured = learnedFile<number>(path)
  return {
    of(lane, run) {
      if (!run.device) return undefined
      const measuredBytes = measured.get(nameOf(lane, run))
      if (run.bytes !== undefined) return { bytes: run.bytes, source: 'configured', measuredBytes }
      if (measuredBytes === undefined) return { bytes: run.device.bytes, source: 'unmeasured', measuredBytes }
      return { bytes: Math.min(measuredBytes, run.device.bytes), source: 'measured', measuredBytes }
    },
    add(lane, run, bytes) {
      const name = nameOf(lane, run)
      const isMore = bytes > (measured.get(name) ?? 0)
      if (isMore) measured.set(name, bytes)
      return isMore
    },
  }
}

/** Whether it takes clearly more than is kept for it, so that others may not find the room they are given. */
export function takesTooMuch({ bytes, measuredBytes = 0 }: Pick<MemoryFigure, 'bytes' | 'measuredBytes'>): boolean {
  return measuredBytes > bytes * TOLERANCE
}

/** Other options take other amounts. */
function nameOf(lane: string, { command, env }: EngineRun): string {
  return `${lane} ${hash('sha256', JSON.stringify([command, env])).slice(0, 16)}`
}
