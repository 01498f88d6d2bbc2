import type { EngineRequest } from '../../engines/job.ts'
import type { GenerationDialect } from '../../engines/dialects/dialect.ts'
import { jsonRequest } from '../request/engine-operation.ts'

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
