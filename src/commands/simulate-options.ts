import { parseArgs } from 'node:util'
import type { LaneLimits } from '../core/admission/lane.ts'
import { parseSizes } from '../core/admission/synthetic-load.ts'
import type { ArrivalProcess, SyntheticLoad, Sizes } from '../core/admission/synthetic-load.ts'
import type { EngineSpeed } from '../core/admission/queue-simulation.ts'
import { UsageError, type Flags } from './command.ts'
import type { Replay } from './recorded-load.ts'

export const help = `weir simulate [options]
weir simulate --replay MODEL --from DATE --to DATE [options]

The real admission rules run in virtual time against a described load. A limit may be a list
(--max-concurrent-requests 8,16,32): every combination is run on the same load and compared.

Limits, as in the catalog
  --token-budget N                tokens in flight (200000)
  --max-concurrent-requests N     requests in flight (32)
  --max-queue-depth N             requests that may wait (256)
  --max-wait-ms N                 longest wait before 503 (120000)

Load
  --arrivals KIND                 poisson (independent callers), constant, or bursts (poisson)
  --rate N                        requests a second, on average (1)
  --burst-size N                  requests that come at once, with bursts (20)
  --duration SECONDS              length of the load (600)
  --input SIZES                   input tokens of a request (400/3000)
  --max-tokens SIZES              the output it asks for, charged up front (2048)
  --output SIZES                  the output it really gets (200/900)

SIZES is a figure (800), evenly between two (200-4000), or a median and a 95th percentile (400/3000).

Recorded load, from the ledger: when requests came, and how large they were
  --replay MODEL                  the requests to a model, instead of a described load
  --workspace W                   those to its capacity reserved for W, instead of the shared one
  --from DATE, --to DATE          2026-11-15 is that day in Sydney (--to with the whole day);
                                  2026-11-15T09:00:00Z is a time

Engine
  --tokens-per-second N           output of one stream that is alone (60)
  --prefill-tokens-per-second N   input read by one request that is alone (5000)
  --slowdown N                    share by which each further request slows all of them (0.02)

  --seed N                        another load of the same description (1)`

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
  'tokens-per-second': { type: 'string', default: '60' },
  'prefill-tokens-per-second': { type: 'string', default: '5000' },
  slowdown: { type: 'string', default: '0.02' },
  seed: { type: 'string', default: '1' },
  config: { type: 'string' },
  data: { type: 'string' },
  json: { type: 'boolean', default: false },
} as const

export interface SimulateOptions {
  readonly flags: Flags
  readonly seed: number
  readonly replay: Replay | undefined
  readonly load: SyntheticLoad
  readonly engine: EngineSpeed
  /** Every combination of the limits given. */
  readonly limits: readonly LaneLimits[]
}

const runsMax = 100
const requestsMax = 2_000_000

export function readOptions(args: readonly string[]): SimulateOptions {
  const flags = parse(args)
  const { values } = flags
  type Name = Exclude<keyof typeof values, 'json' | 'config' | 'data' | 'replay' | 'workspace' | 'from' | 'to'>

  /** Above 0, or from 0 up where `least` says so. */
  function positive(name: Name, least?: 0): number {
    const number = Number(values[name])
    const isGood = Number.isFinite(number) && (number > 0 || number === least) && values[name].trim() !== ''
    if (!isGood) throw new UsageError(`--${name} must be a number above 0: ${values[name]}`)
    return number
  }

  function whole(name: Name, text: string): number {
    const number = Number(text)
    if (!/^\d+$/.test(text) || !Number.isSafeInteger(number)) {
      throw new UsageError(`--${name} must be a whole number: ${text}`)
    }
    return number
  }

  const wholes = (name: Name): number[] => values[name].split(',').map((text) => whole(name, text))

  function sizes(name: Name): Sizes {
    const sizes = parseSizes(values[name])
    if (sizes === undefined) throw new UsageError(`--${name} must be like 800, 200-4000 or 400/3000: ${values[name]}`)
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
    throw new UsageError(`--rate times --duration must not exceed ${requestsMax} requests`)
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
  if (limits.length > runsMax) throw new UsageError(`${limits.length} combinations of limits are more than ${runsMax}`)

  return {
    flags,
    seed: whole('seed', values.seed),
    replay: replayOf(values),
    load,
    engine: {
      tokensPerSecond: positive('tokens-per-second'),
      prefillTokensPerSecond: positive('prefill-tokens-per-second'),
      slowdown: positive('slowdown', 0),
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
      throw new UsageError('--workspace, --from and --to belong to --replay')
    }
    return undefined
  }
  if (from === undefined || to === undefined) throw new UsageError('--replay needs a period: --from and --to')
  return { model, workspace, from, to }
}

function arrivalProcess(text: string): ArrivalProcess {
  if (text === 'poisson' || text === 'constant' || text === 'bursts') return text
  throw new UsageError(`--arrivals must be poisson, constant or bursts: ${text}`)
}
