import type { EngineRequest } from '../core/job.ts'
import { jsonBytes } from '../core/json/json-bytes.ts'
import type { SlicedWork } from '../core/sliced-work.ts'

/**
 * The calls for an engine that answers each with one choice for one prompt, whatever it was asked for: one for each
 * choice of each prompt, in the order of their indexes.
 */

/** Left out of the shared part of the bodies. */
export const SPLIT_PARAMETERS: ReadonlySet<string> = new Set(['n', 'best_of', 'seed'])

const COMMA = Buffer.from(',')

interface SplitRequest {
  /** The call without what differs between the choices. Its body is JSON in a buffer. */
  readonly shared: EngineRequest & { readonly body: Buffer }
  /** The choices of each prompt. */
  readonly choices: number
  /** Each choice has its own, because the same one would give the same text. */
  readonly seed: number | undefined
  /** If the shared body has none. */
  readonly prompts?: readonly string[] | undefined
}

export function* splitCalls({ shared, choices, seed, prompts }: SplitRequest): SlicedWork<EngineRequest[]> {
  const calls: EngineRequest[] = []
  for (const prompt of prompts ?? [undefined]) {
    const front = prompt === undefined ? undefined : yield* jsonBytes({ prompt })
    for (let choice = 0; choice < choices; choice++) {
      const own = seed === undefined ? undefined : Buffer.from(JSON.stringify({ seed: seed + choice }))
      calls.push({ ...shared, body: mergedObjects([front, own, shared.body]), repeatsInput: choice > 0 })
    }
  }
  return calls
}

/** One JSON object with the fields of several, none of which is empty. What is large is not copied. */
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
/** The later of two fields with one name counts. */
const WHOLE_AND_SHORT = Buffer.from(',"stream":false,"stream_options":null,"max_tokens":1}')

/** A streamed call of a server that hides its refusals of streams, with the call that shows them. */
export function withExplanation(call: EngineRequest & { readonly body: Buffer }): typeof call {
  const { body } = call
  const pieces = [body.subarray(0, body.lastIndexOf(CLOSING_BRACE)), WHOLE_AND_SHORT]
  return { ...call, ifSilent: { ...call, body: inPieces(pieces), repeatsInput: true } }
}
