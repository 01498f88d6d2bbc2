import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import type { Mutation } from '../../mutants.ts'
import { smallJournal } from './small-journal.ts'
import { JournalViolation, type Rule } from './witness.ts'
import { simulateJournal, type JournalTally, type SimulationOptions } from './world.ts'

interface Run extends SimulationOptions {
  readonly mutations: readonly Mutation[]
}

export type Verdict =
  | { readonly isRight: true; readonly tally: JournalTally }
  | { readonly isRight: false; readonly rule: Rule; readonly message: string }

/** Simulates on a thread of its own: the test runner follows every promise of its own thread, which takes longer. */
export function simulateInWorker(run: Run): Promise<Verdict> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: run })
    worker.once('message', resolve)
    worker.once('error', reject)
  })
}

if (!isMainThread) {
  const { mutations, ...options } = workerData as Run
  const journal = smallJournal()
  try {
    const tally = await simulateJournal(await journal.load(...mutations), options)
    parentPort?.postMessage({ isRight: true, tally } satisfies Verdict)
  } catch (error) {
    if (!(error instanceof JournalViolation)) throw error
    parentPort?.postMessage({ isRight: false, rule: error.rule, message: error.message } satisfies Verdict)
  } finally {
    await journal.remove()
  }
}
