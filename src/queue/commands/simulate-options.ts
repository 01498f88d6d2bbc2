import { parseArgs } from 'node:util'
import type { LaneLimits } from '../lane.ts'
import { parseSizes, type ArrivalProcess, type SyntheticLoad, type Sizes } from '../synthetic-load.ts'
import type { BatchLoad, EngineSpeed } from '../queue-simulation.ts'
import { Flags, UsageError } from '../../cli/command.ts'
import type { Replay } from './recorded-load.ts'

export const help = `weir simulate [options]
weir simulate --replay MODEL --from DATE --to DATE [options]

Runs the real admission rules in virtual time against a synthetic or recorded
load, and reports waits, refusals and utilisation. A limit may be a list, such
as --max-concurrent-requests 8,16,32: every combination runs on the same load,
and the results are compared. Defaults are in parentheses.

Limits, as in the catalog:
  --token-budget N                tokens in flight (200000)
  --max-concurrent-requests N     requests in flight (32)
  --max-queue-depth N             requests that may wait (256)
  --max-wait-ms N                 longest wait before a 503 (120000)

Synthetic load:
  --arrivals KIND                 poisson, constant or bursts (poisson)
  --rate N                        average requests per second (1)
  --burst-size N                  requests in each burst (20)
  --duration SECONDS              length of the load (600)
  --input SIZES                   input tokens per request (400/3000)
  --max-tokens SIZES              output tokens that are allowed (2048)
  --output SIZES                  output tokens that are generated (200/900)
  --seed N                        seed of the random load (1)

SIZES is a number (800), a uniform range (200-4000), or a median and a 95th
percentile (400/3000).

Recorded load, from the ledger:
  --replay MODEL                  replay the requests to this model
  --workspace W                   use the capacity reserved for W instead of the
                                  shared capacity
  --from DATE, --to DATE          2026-11-15 means that day in Sydney, and --to
                                  includes it; 2026-11-15T09:00:00Z is an exact
                                  time

Batch work, on what the load above leaves idle; the report compares the load
with and without it:
  --batch-lines N                 lines that are ready at the start; "all" means
                                  as many as fit
  --batch-input N                 input tokens of each line (400)
  --batch-output N                output tokens of each line (200)

Engine:
  --tokens-per-second N           output speed of a single request (60)
  --prefill-tokens-per-second N   input speed of a single request (5000)
  --slowdown N                    fraction by which each further request slows
                                  all of them down (0.02)`

const options = {
  'token-budget': { type: 'string', default: '200000' },
  'max-concurrent-requests': { type: 'string', default: '32' },
  'max-queue-depth': { type: 'string', default: '256' },
  'max-wait-ms': { type: 'string', default: '120000' },
  arrivals: { type: 'string', default: 'poisson' },
  rate: { type: 'string', default: '1' },
  'burst-size': { type: 'string', default: '20' },
  duration: { type: 'string', default: '600' },
  input: { type: 'string', default: '400/3000' },
  'max-tokens': { type: 'string', default: '2048' },
  output: { type: 'string', default: '200/900' },
  replay: { type: 'string' },
  workspace: { type: 'string' },
  from: { type: 'string' },
  to: { type: 'string' },
  'batch-lines': { type: 'string' },
  'batch-input': { type: 'string', default: '400' },
  'batch-output': { type: 'string', default: '200' },
  'tokens-per-second': { type: 'string', default: '60' },
  'prefill-tokens-per-second': { type: 'string', default: '5000' },
  slowdown: { type: 'string', default: '0.02' },
  seed: { type: 'string', default: '1' },
  config: { type: 'string' },
  data: { type: 'string' },
  json: { type: 'boolean', default: false },
  debug: { type: 'boolean', default: false },
} as const

export interface SimulateOptions {
  readonly flags: Flags
  readonly seed: number
  readonly replay: Replay | undefined
  readonly load: SyntheticLoad
  readonly engine: EngineSpeed
  readonly batch: BatchLoad | undefined
  /** Every combination of the given limits. */
  readonly limits: readonly LaneLimits[]
}

const runsMax = 100
const requestsMax = 2_000_000

export function readOptions(args: readonly string[]): SimulateOptions {
  const parsed = parse(args)
  const { values } = parsed
  type Name = Exclude<
    keyof typeof values,
    'json' | 'debug' | 'config' | 'data' | 'replay' | 'workspace' | 'from' | 'to' | 'batch-lines'
  >

  /** A number above 0, or from 0 up when `least` is given. */
  function positive(name: Name, least?: 0): number {
    const number = Number(values[name])
    const isValid = Number.isFinite(number) && (number > 0 || number === least) && values[name].trim() !== ''
    const range = least === undefined ? 'above 0' : 'from 0 up'
    if (!isValid) throw new UsageError(`--${name} must be a number ${range}, but is "${values[name]}"`)
    return number
  }

  function whole(name: Name | 'batch-lines', text: string): number {
    const number = Number(text)
    if (!/^\d+$/.test(text) || !Number.isSafeInteger(number)) {
      throw new UsageError(`--${name} must be a whole number, but is "${text}"`)
    }
    return number
  }

  const wholes = (name: Name): number[] => values[name].split(',').map((text) => whole(name, text))

  function sizes(name: Name): Sizes {
    const sizes = parseSizes(values[name])
    if (sizes === undefined) {
      throw new UsageError(`--${name} must be a size such as 800, 200-4000 or 400/3000, but is "${values[name]}"`)
    }
    return sizes
  }

  const load: SyntheticLoad = {
    process: arrivalProcess(values.arrivals),
    requestsPerSecond: positive('rate'),
    burstSize: Math.max(1, whole('burst-size', values['burst-size'])),
    durationMs: positive('duration') * 1000,
    inputTokens: sizes('input'),
    maxTokens: sizes('max-tokens'),
    outputTokens: sizes('output'),
  }
  if ((load.requestsPerSecond * load.durationMs) / 1000 > requestsMax) {
    throw new UsageError(`--rate times --duration must be at most ${requestsMax} requests`)
  }

  const limits: LaneLimits[] = []
  for (const tokenBudget of wholes('token-budget')) {
    for (const maxConcurrentRequests of wholes('max-concurrent-requests')) {
      for (const maxQueueDepth of wholes('max-queue-depth')) {
        for (const maxWaitMs of wholes('max-wait-ms')) {
          limits.push({ tokenBudget, maxConcurrentRequests, maxQueueDepth, maxWaitMs })
        }
      }
    }
  }
  if (limits.length > runsMax) {
    throw new UsageError(`at most ${runsMax} combinations of limits are allowed, but there are ${limits.length}`)
  }

  const lines = values['batch-lines']
  if (lines !== undefined && limits.length > 1) {
    throw new UsageError(
      '--batch-lines compares the load with and without batch work, so give one value for each limit',
    )
  }

  return {
    flags: new Flags(parsed),
    seed: whole('seed', values.seed),
    replay: replayOf(values),
    load,
    engine: {
      tokensPerSecond: positive('tokens-per-second'),
      prefillTokensPerSecond: positive('prefill-tokens-per-second'),
      slowdown: positive('slowdown', 0),
    },
    batch:
      lines === undefined
        ? undefined
        : {
            lines: lines === 'all' ? Infinity : whole('batch-lines', lines),
            inputTokens: whole('batch-input', values['batch-input']),
            outputTokens: Math.max(1, whole('batch-output', values['batch-output'])),
          },
    limits,
  }
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options })
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}

function replayOf(values: Partial<Record<'replay' | 'workspace' | 'from' | 'to', string>>): Replay | undefined {
  const { replay: model, workspace, from, to } = values
  if (model === undefined) {
    if (workspace !== undefined || from !== undefined || to !== undefined) {
      throw new UsageError('--workspace, --from and --to need --replay')
    }
    return undefined
  }
  if (from === undefined || to === undefined) throw new UsageError('--replay needs a period: --from and --to')
  return { model, workspace, from, to }
}

function arrivalProcess(text: string): ArrivalProcess {
  if (text === 'poisson' || text === 'constant' || text === 'bursts') return text
  throw new UsageError(`--arrivals must be poisson, constant or bursts, but is "${text}"`)
}
