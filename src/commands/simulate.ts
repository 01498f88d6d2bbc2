import { describedArrivals } from '../core/described-load.ts'
import { simulateQueue } from '../core/queue-simulation.ts'
import type { Arrival } from '../core/queue-simulation.ts'
import { seededRandom } from '../core/seeded-random.ts'
import { help, readOptions, UsageError } from './simulate-options.ts'
import type { SimulateOptions } from './simulate-options.ts'
import { comparison, singleRun } from './simulate-report.ts'

/** What happened in a period: arrivals in any order, timed from its beginning. */
export interface Recording {
  readonly arrivals: readonly Arrival[]
  readonly durationMs: number
}

/** `weir simulate`; gives the exit code. Where `recording` can look up a period, `--replay` replays it. */
export async function simulate(args: string[], recording?: (period: string) => Promise<Recording>): Promise<number> {
  try {
    const options = readOptions(args)
    if (options.help) {
      console.log(help)
      return 0
    }
    const { arrivals, durationMs } = await chosenLoad(options, recording)
    const { engine } = options
    const runs = options.limits.map((limits) => simulateQueue({ limits, engine, arrivals, durationMs }))
    const [first, second] = runs
    if (options.json) console.log(JSON.stringify({ durationMs, engine, runs }))
    else if (first !== undefined) console.log(second === undefined ? singleRun(first, durationMs) : comparison(runs))
    return 0
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    console.error(`${error.message}\nSee weir simulate --help`)
    return 2
  }
}

async function chosenLoad(
  { replay, load, seed }: SimulateOptions,
  recording?: (period: string) => Promise<Recording>,
): Promise<Recording> {
  if (replay === undefined) {
    return { arrivals: [...describedArrivals(load, seededRandom(seed))], durationMs: load.durationMs }
  }
  if (recording === undefined) throw new UsageError('--replay needs a ledger to read from')
  const { arrivals, durationMs } = await recording(replay)
  return { arrivals: arrivals.toSorted((one, other) => one.atMs - other.atMs), durationMs }
}
