import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { createPipeline } from '../../../src/inference/pipeline/pipeline.ts'
import { simulatePipeline, type PipelineTally } from './world.ts'

interface Run {
  readonly seed: number
  readonly schedules: number
}

/** Simulates on a thread of its own: the test runner follows every promise of its own thread, which takes ten times as long. */
export function simulateInWorker(run: Run): Promise<PipelineTally> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: run })
    worker.once('message', resolve)
    worker.once('error', reject)
  })
}

if (!isMainThread) {
  const { seed, schedules } = workerData as Run
  parentPort?.postMessage(await simulatePipeline(createPipeline, seed, schedules))
}
