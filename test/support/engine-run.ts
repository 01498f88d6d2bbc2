import type { EngineRun } from '../../src/catalog/model.ts'

/** A process of an engine as the catalog has it, without a device. */
export function engineRun(changes: Partial<EngineRun> = {}): EngineRun {
  return {
    command: ['serve'],
    env: {},
    port: 8101,
    readyPath: undefined,
    startTimeoutMs: 5000,
    stopAfterIdleMs: undefined,
    device: undefined,
    bytes: undefined,
    group: undefined,
    isPinned: false,
    isPreloaded: false,
    sleep: undefined,
    ...changes,
  }
}
