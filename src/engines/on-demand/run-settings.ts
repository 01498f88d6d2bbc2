import type { EngineRun } from '../../catalog/model.ts'
import type { EngineSettings } from './decisions.ts'
import type { MemoryFigure } from './memory-figures.ts'
import type { Amounts } from './room.ts'

/** What `run` in the catalog means for the scheduler and for the process of an engine. */

export function settingsOf(run: EngineRun, memory: MemoryFigure | undefined): EngineSettings {
  const { device, sleep } = run
  const asleep = sleep && new Map([[`port ${run.port}`, 1], ...(device ? [[device.name, sleep.bytes] as const] : [])])
  return {
    needs: needsOf(run, memory),
    needsAsleep: asleep,
    stopAfterIdleMs: run.stopAfterIdleMs ?? Infinity,
    isPinned: run.isPinned,
  }
}

export function needsOf({ port, group, device }: EngineRun, memory: MemoryFigure | undefined): Amounts {
  const needs = new Map([[`port ${port}`, 1]])
  if (group !== undefined) needs.set(`group ${group}`, 1)
  if (device && memory) needs.set(device.name, memory.bytes)
  return needs
}

/**
 * Without what is Weir's own: its secrets, and the setting of its own memory, which scripts/bootstrap.mjs makes and which would slow
 * down a server whose threads allocate much.
 */
export function environmentOf(run: Pick<EngineRun, 'env' | 'port'>, environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const isOwn = (name: string): boolean => name.startsWith('WEIR_') || name === 'MALLOC_ARENA_MAX'
  const inherited = Object.entries(environment).filter(([name]) => !isOwn(name))
  const own = Object.entries(run.env).map(([name, value]) => [name, withPort(value, run.port)])
  return { ...Object.fromEntries(inherited), ...Object.fromEntries(own) }
}

export function withPort(text: string, port: number): string {
  return text.replaceAll('${PORT}', String(port))
}
