import { leastRequestMemory } from '../../config/config-file.ts'
import type { Config } from '../../config.ts'
import { workerDirectory } from '../../cluster/workers/directories.ts'
import { sendToPrimary } from '../../cluster/workers/worker-port.ts'

/** What a worker process knows about itself. */
export interface WorkerPlace {
  readonly number: number
  readonly count: number
}

/** Reads `2/4`; undefined unless this process was started as a worker. */
export function workerPlace(text: string | undefined): WorkerPlace | undefined {
  const place = /^(\d+)\/(\d+)$/.exec(text ?? '')
  return process.connected && place ? { number: Number(place[1]), count: Number(place[2]) } : undefined
}

/**
 * A worker has a data directory of its own, with its journal and its lock. Files for callers, and the operator's token,
 * stay in the configured one. All workers together use as much memory as one process may.
 */
export function workerConfig(config: Config, { number, count }: WorkerPlace): Config {
  return {
    ...config,
    worker: number,
    processes: count,
    dataDir: workerDirectory(config.dataDir, number),
    maxRequestMemoryBytes: Math.max(
      leastRequestMemory(config.maxBodyBytes),
      Math.floor(config.maxRequestMemoryBytes / count),
    ),
  }
}

/** Resolves when the process that started this worker has exited. */
export function primaryGone(): Promise<void> {
  return new Promise((resolve) => process.once('disconnect', () => resolve()))
}

export function reportRunning(): void {
  sendToPrimary({ kind: 'running' })
}
