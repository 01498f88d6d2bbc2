import type { EngineRequest, StreamRelay } from '../../engines/job.ts'
import type { GenerationDialect } from '../../engines/dialects/dialect.ts'
import { jsonRequest } from '../request/engine-operation.ts'
import type { GenerationOptions } from './generation-options.ts'
import type { CallStream } from './generation-stream.ts'
import { sumOfChoices, type ReportedUsage } from './generation-usage.ts'

/**
 * The calls of a chat or a text completion. Some engines answer each call with one choice for one prompt, even if the
 * request asked for more: they get one call for each choice of each prompt, in the order of their indexes.
 */

/** Left out of the shared part of the bodies. */
export const SPLIT_PARAMETERS: ReadonlySet<string> = new Set(['n', 'best_of', 'seed'])

const COMMA = Buffer.from(',')

export interface SplitChoices {
  /** The choices of each prompt. */
  readonly choices: number
  /** Each choice has its own seed, because the same seed would give the same text. */
  readonly seed: number | undefined
}

interface GenerationBodies {
  /** The part that all calls share. If it has no prompt, the prompts follow, each as the JSON of an object. */
  readonly bodies: readonly Buffer[]
  readonly isStream: boolean
  readonly split: SplitChoices | undefined
  readonly inputName: string
}

export function generationCalls(
  { path, hidesRefusalsOfStreams }: Pick<GenerationDialect, 'path' | 'hidesRefusalsOfStreams'>,
  { bodies, isStream, split, inputName }: GenerationBodies,
): readonly EngineRequest[] {
  const [body = Buffer.alloc(0), ...prompts] = bodies
  const plain = jsonRequest(path, body, inputName)
  const shared = isStream && hidesRefusalsOfStreams ? withExplanation(plain) : plain
  return split ? splitCalls(shared, split, prompts.length > 0 ? prompts : [undefined]) : [shared]
}

function splitCalls(
  shared: EngineRequest & { readonly body: Buffer },
  { choices, seed }: SplitChoices,
  prompts: readonly (Buffer | undefined)[],
): readonly EngineRequest[] {
  const calls: EngineRequest[] = []
  for (const prompt of prompts) {
    for (let choice = 0; choice < choices; choice++) {
      const own = seed === undefined ? undefined : Buffer.from(JSON.stringify({ seed: seed + choice }))
      calls.push({ ...shared, body: mergedObjects([prompt, own, shared.body]), repeatsInput: choice > 0 })
    }
  }
  return calls
}

/** One JSON object with the fields of several, none of which is empty. Large values are not copied. */
function mergedObjects(objects: readonly (Buffer | undefined)[]): EngineRequest['body'] {
  const given = objects.filter((it) => it !== undefined)
  const [only, ...others] = given
  if (only && others.length === 0) return only
  // All but the last lose their closing brace, and all but the first their opening one.
  const last = given.length - 1
  const pieces = given.flatMap((object, index) =>
    index === last ? [object.subarray(1)] : [object.subarray(index === 0 ? 0 : 1, -1), COMMA],
  )
  return inPieces(pieces)
}

function inPieces(pieces: readonly Buffer[]): EngineRequest['body'] {
  return {
    length: pieces.reduce((sum, piece) => sum + piece.length, 0),
    async *open() {
      yield* pieces
    },
  }
}

const CLOSING_BRACE = 0x7d
/** If two fields have the same name, the later one counts. */
const WHOLE_AND_SHORT = Buffer.from(',"stream":false,"stream_options":null,"max_tokens":1}')

/** A streamed call to a server that hides its refusals of streams, with the call that reveals them. */
function withExplanation(call: EngineRequest & { readonly body: Buffer }): typeof call {
  const { body } = call
  const pieces = [body.subarray(0, body.lastIndexOf(CLOSING_BRACE)), WHOLE_AND_SHORT]
  return { ...call, ifSilent: { ...call, body: inPieces(pieces), repeatsInput: true } }
}

/**
 * The streams of all calls of a request as one. `open` starts the stream of one call, for the choices in the options.
 * If calls have one choice each, the n-th call has the n-th choice.
 */
export function joinedStream(
  options: GenerationOptions,
  open: (options: GenerationOptions) => CallStream,
): StreamRelay {
  const { limit, prompts = 1, oneChoicePerCall } = options
  if (!oneChoicePerCall || limit.choices === 1) return { ...open(options), next: () => false }
  const streams = [open(choiceOf(options, 0))]
  const current = (): CallStream => streams[streams.length - 1]!
  const total = (count: (stream: CallStream) => number): number => streams.reduce((sum, it) => sum + count(it), 0)

  function reported(): ReportedUsage | undefined {
    const counts = new Map<number, ReportedUsage>()
    for (const [index, stream] of streams.entries()) {
      const count = stream.reported()
      if (count) counts.set(index, count)
    }
    return counts.size === 0 ? undefined : sumOfChoices(counts, limit.choices / prompts)
  }

  return {
    push: (chunk) => current().push(chunk),
    isDone: () => current().isDone(),
    isBroken: () => current().isBroken(),
    wrongEvent: () => current().wrongEvent(),
    next() {
      if (!current().isComplete() || streams.length === limit.choices) return false
      streams.push(open(choiceOf(options, streams.length)))
      return true
    },
    isComplete: () => streams.length === limit.choices && streams.every((stream) => stream.isComplete()),
    isPastLimit: () => streams.some((stream) => stream.isPastLimit()),
    reportedUsage: () => reported()?.usage,
    deltaCount: () => total((stream) => stream.deltaCount()),
    deltasSinceReport: () => total((stream) => stream.deltasSinceReport()),
    closing: (usage) => current().closing(usage, reported()),
    failure: (error) => current().failure(error),
  }
}

/** The options for one choice alone. */
function choiceOf(options: GenerationOptions, index: number): GenerationOptions {
  const { limit, prompts = 1 } = options
  const echoed = limit.echoedCharacters?.[Math.floor((index * prompts) / limit.choices)]
  return {
    ...options,
    limit: {
      ...limit,
      choices: 1,
      generated: 1,
      echoedCharacters: echoed === undefined ? undefined : [echoed],
    },
    prompts: 1,
    firstIndex: index,
  }
}
