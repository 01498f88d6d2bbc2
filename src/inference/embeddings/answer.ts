import type { ByteCollector } from '../../shared/byte-collector.ts'
import type { EngineHeaders, PassThrough, ParsedAnswer, WholeAnswer } from '../../engines/job.ts'
import { embeddingList, isBase64Vector, listInBytes, type EmbeddingList } from './embedding-list.ts'
import { noUsage, type Usage } from '../../billing/rating/rating.ts'
import type { EmbeddingsDialect } from '../../engines/dialects/dialect.ts'
import { sumOfCounts, tryParseJson } from '../request/engine-operation.ts'

type Vector = readonly number[] | string

/**
 * How to read the answers of calls with `counts` texts each. A separate function, so that the closures do
 * not retain the request body.
 */
export function embeddingsAnswer(
  dialect: EmbeddingsDialect,
  counts: readonly number[],
  encoding: 'base64' | 'float',
): WholeAnswer {
  const [only] = counts.length === 1 ? counts : []
  return {
    kind: 'whole',
    passThrough: only ? (head) => passThroughOf(dialect, embeddingList(only, encoding), head.model) : undefined,
    async read(bodies, head, headers) {
      const joined = joinVectors(dialect, bodies, headers, counts, encoding === 'base64')
      return joined && toAnswer(joined, head.model)
    },
  }
}

/** The vectors of all calls together. */
interface JoinedVectors {
  readonly inputTokens: number | undefined
  /** `[{"object":"embedding",…},…]`: the engine's own bytes when they already have our format. */
  data(): Buffer
}

const BEFORE_DATA = '{"object":"list","data":'

function toAnswer({ inputTokens, data }: JoinedVectors, model: string): ParsedAnswer {
  return {
    usage: usageOf(inputTokens),
    outputBytes: () => 0,
    render: (usage) => [Buffer.from(BEFORE_DATA), data(), Buffer.from(afterData(model, usage))],
  }
}

function afterData(model: string, { inputTokens }: Usage): string {
  const counts = JSON.stringify({ prompt_tokens: inputTokens, total_tokens: inputTokens })
  return `,"model":${JSON.stringify(model)},"usage":${counts}}`
}

/** Forwards the engine's list while it arrives, with our own fields around it. */
function passThroughOf(dialect: EmbeddingsDialect, list: EmbeddingList, model: string): PassThrough {
  let isOpen = false
  return {
    push(chunk) {
      const bytes = list.push(chunk)
      if (!bytes || isOpen) return bytes
      isOpen = true
      return Buffer.concat([Buffer.from(BEFORE_DATA), bytes])
    },
    end(headers) {
      const rest = list.rest()
      const output = rest === undefined ? undefined : dialect.response(rest, headers)
      return (
        output && {
          usage: usageOf(output.inputTokens),
          outputBytes: () => 0,
          render: (usage) => afterData(model, usage),
        }
      )
    },
  }
}

function usageOf(inputTokens: number | undefined): Usage | undefined {
  return inputTokens === undefined ? undefined : { ...noUsage, inputTokens }
}

function joinVectors(
  dialect: EmbeddingsDialect,
  bodies: readonly ByteCollector[],
  headers: readonly EngineHeaders[],
  counts: readonly number[],
  base64: boolean,
): JoinedVectors | undefined {
  const vectors: Vector[] = []
  let inputTokens: number | undefined = 0
  let unchanged: Buffer | undefined
  for (const [position, collected] of bodies.entries()) {
    const body = collected.whole()
    const parsed = tryParseJson(body)
    const output = dialect.response(parsed, headers[position] ?? {})
    if (output?.vectors.length !== counts[position]) return undefined
    for (const vector of output?.vectors ?? []) {
      if (!isVector(vector)) return undefined
      vectors.push(vector)
    }
    inputTokens = sumOfCounts(inputTokens, output?.inputTokens)
    if (bodies.length === 1 && vectors.every((it) => (typeof it === 'string') === base64)) {
      unchanged = listInBytes(body, parsed)
    }
  }
  return { inputTokens, data: () => unchanged ?? Buffer.from(renderVectors(vectors, base64)) }
}

/** Numbers, or float32 in base64. undefined: the engine left out a vector. */
function isVector(vector: Vector | undefined): boolean {
  if (typeof vector === 'string') return isBase64Vector(vector)
  return vector !== undefined && vector.length > 0 && vector.every((it) => Number.isFinite(it))
}

function renderVectors(vectors: readonly Vector[], base64: boolean): string {
  const items = vectors.map((vector, index) => {
    const embedding = base64 ? `"${toBase64(vector)}"` : JSON.stringify(toNumbers(vector))
    return `{"object":"embedding","index":${index},"embedding":${embedding}}`
  })
  return `[${items.join(',')}]`
}

/** Little-endian float32, which is what every SDK decodes. */
function toBase64(vector: Vector): string {
  if (typeof vector === 'string') return vector
  const bytes = Buffer.allocUnsafe(vector.length * 4)
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, index * 4)
  return bytes.toString('base64')
}

function toNumbers(vector: Vector): readonly number[] {
  if (typeof vector !== 'string') return vector
  const bytes = Buffer.from(vector, 'base64')
  return Array.from({ length: bytes.length / 4 }, (_, index) => bytes.readFloatLE(index * 4))
}
