import { syntheticArrivals } from '../synthetic-load.ts'
import { simulateQueue, type BatchLoad, type QueueReport } from '../queue-simulation.ts'
import { seededRandom } from '../../shared/seeded-random.ts'
import type { Command } from '../../cli/command.ts'
import { recordedLoad, type Replay, type TimedArrivals } from './recorded-load.ts'
import { help, readOptions, type SimulateOptions } from './simulate-options.ts'
import { batchComparison, comparison, runView, singleRun } from './simulate-report.ts'
import type { View } from '../../cli/terminal/view.ts'

export const simulate: Command = {
  summary: 'predict waits and refusals for given limits and load',
  help,
  async run(args) {
    const options = readOptions(args)
    const { data, text } = await simulation(options, (replay) => recordedLoad(options.flags, replay))
    options.flags.print(data, text)
  },
}

interface Simulation {
  readonly data: object
  text(view: View): string
}

/** Runs every combination of limits on the same load. */
export async function simulation(
  options: SimulateOptions,
  readRecorded: (replay: Replay) => Promise<TimedArrivals>,
): Promise<Simulation> {
  const { arrivals, durationMs } = await chosenLoad(options, readRecorded)
  const { engine, batch } = options
  const runs = options.limits.flatMap((limits) => {
    const load = { limits, engine, arrivals, durationMs }
    return [simulateQueue(load), ...(batch ? [simulateQueue({ ...load, batch })] : [])]
  })
  return {
    data: {
      duration_ms: durationMs,
      engine: {
        tokens_per_second: engine.tokensPerSecond,
        prefill_tokens_per_second: engine.prefillTokensPerSecond,
        slowdown: engine.slowdown,
      },
      runs: runs.map(runView),
    },
    text: (view) => reportText(runs, batch, durationMs, view),
  }
}

function reportText(
  runs: readonly QueueReport[],
  batch: BatchLoad | undefined,
  durationMs: number,
  view: View,
): string {
  const [only, withBatch] = runs
  if (batch && only && withBatch) return batchComparison([only, withBatch], batch, view)
  return only !== undefined && runs.length === 1 ? singleRun(only, durationMs) : comparison(runs, view)
}

async function chosenLoad(
  { replay, load, seed }: SimulateOptions,
  readRecorded: (replay: Replay) => Promise<TimedArrivals>,
): Promise<TimedArrivals> {
  if (replay === undefined) {
    return { arrivals: [...syntheticArrivals(load, seededRandom(seed))], durationMs: load.durationMs }
  }
  const { arrivals, durationMs } = await readRecorded(replay)
  return { arrivals: arrivals.toSorted((one, other) => one.atMs - other.atMs), durationMs }
}
