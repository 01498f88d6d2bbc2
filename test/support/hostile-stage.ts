import assert from 'node:assert/strict'
import { scriptedEngine, type EngineCallSeen, type Script } from './scripted-engine.ts'
import { watchedWeir, type WatchedWeir } from './watched-weir.ts'
import { modelEntry } from './weir.ts'

/**
 * A service under bodies that are made to keep its event loop busy. Whatever a body contains, other callers must not wait
 * for it longer than for JSON.parse on a plain body of the largest size, times three: 50 ms on the machine this was
 * written on.
 */
export interface HostileStage {
  readonly weir: WatchedWeir
  post(path: string, body: string | Buffer<ArrayBuffer>): Promise<{ status: number; text: string }>
  /** Call it once the first requests have compiled the code that they need. */
  calibrate(): Promise<void>
  /**
   * Checks that no turn of the event loop takes too long while `work` runs. On a busy machine everything takes longer for
   * a while, so it is measured again before it counts as a failure.
   */
  requireShortTurns(work: () => Promise<void>): Promise<void>
  /** Sends a body that gets one of these answers, and holds up nothing. */
  harmless(path: string, body: string, ...statuses: number[]): Promise<void>
  stop(): Promise<void>
}

const MAX_BYTES = 20 * 1024 * 1024
/** Room for the rest of a body around its largest part. */
export const ROOM = MAX_BYTES - 1000
const PLAIN_PARSES = 3
const TRIES = 4

/** As many copies as fit into `bytes`. */
export function fill(piece: string, bytes = ROOM, separator = ''): string {
  const count = Math.floor(bytes / (Buffer.byteLength(piece) + separator.length))
  return separator === '' ? piece.repeat(count) : Array.from({ length: count }, () => piece).join(separator)
}

/** There are models for every JSON endpoint: `big/…` take whatever fits into a body, `small/…` are ordinary ones. */
export async function hostileStage(
  supportedParameters = ['tools', 'response_format', 'logit_bias'],
): Promise<HostileStage> {
  const engine = await scriptedEngine()
  engine.script = honestAnswer
  const entry = (id: string, categories: string[], kind = 'openai', changes: object = {}): object => {
    const isBig = id.startsWith('big/')
    return modelEntry([], {
      id,
      aliases: [],
      categories,
      context_length: isBig ? 100_000_000 : 131_072,
      supported_parameters: supportedParameters,
      pricing: { input_per_million: '0.20', output_per_million: '0.60', per_image: '0.04', per_audio_minute: '0.01' },
      serverless: {
        engine: { kind, urls: [engine.url], model: 'engine-name' },
        limits: { token_budget: isBig ? 1_000_000_000 : 200_000, max_concurrent_requests: 8 },
      },
      ...changes,
    })
  }
  const weir = await watchedWeir({
    rate_limit: { requests_per_minute: 1_000_000 },
    models: ['big', 'small'].flatMap((size) => [
      entry(`${size}/chat`, ['llm', 'vision']),
      entry(`${size}/embedder`, ['embedding']),
      entry(`${size}/reranker`, ['reranker'], 'openai', { rerank_schema: 'documents' }),
      entry(`${size}/batches`, ['reranker'], 'tei', { rerank_schema: 'documents' }),
      entry(`${size}/ranker`, ['reranker'], 'nim', { rerank_schema: 'passages' }),
      entry(`${size}/painter`, ['image']),
      // It supports no parameter, so no call gets to the engine, which reads no forms.
      entry(`${size}/listener`, ['audio'], 'openai', { supported_parameters: [] }),
    ]),
  })
  let limitMs = 0
  const calibrate = async (): Promise<void> => {
    limitMs = PLAIN_PARSES * (await weir.calibrate())
  }

  const post: HostileStage['post'] = async (path, body) => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${weir.key}` }
    const response = await fetch(weir.base + path, { method: 'POST', headers, body })
    return { status: response.status, text: await response.text() }
  }

  const requireShortTurns: HostileStage['requireShortTurns'] = async (work) => {
    const tries: string[] = []
    while (tries.length < TRIES) {
      const turnMs = await weir.longestTurn(work)
      if (turnMs <= limitMs) return
      tries.push(`${turnMs.toFixed(1)} ms, with a limit of ${limitMs.toFixed(1)} ms`)
      await calibrate()
    }
    assert.fail(`the longest turns took ${tries.join('; ')} of CPU time`)
  }

  return {
    weir,
    post,
    calibrate,
    requireShortTurns,
    async harmless(path, body, ...statuses) {
      const bytes = Buffer.from(body)
      assert.ok(bytes.length <= MAX_BYTES, `${bytes.length} bytes`)
      await requireShortTurns(async () => {
        const answer = await post(path, bytes)
        engine.calls.length = 0
        assert.ok(statuses.includes(answer.status), `${answer.status}: ${answer.text.slice(0, 300)}`)
      })
    },
    async stop() {
      await weir.stop()
      await engine.close()
    },
  }
}

/** An engine that always answers correctly. */
function honestAnswer(call: EngineCallSeen): Script {
  const { input, documents, texts, passages, prompt } = call.body as Record<string, unknown[]>
  const answer =
    (input && { data: input.map((_, index) => ({ index, embedding: [0.5] })) }) ??
    (documents && { results: documents.map((_, index) => ({ index, relevance_score: 0.5 })) }) ??
    (texts && texts.map((_, index) => ({ index, score: 0.5 }))) ??
    (passages && { rankings: passages.map((_, index) => ({ index, logit: 0 })) }) ??
    (Array.isArray(prompt) && { choices: prompt.map((_, index) => ({ index, text: 'a', finish_reason: 'stop' })) })
  return answer ? { handle: (_, response) => void response.end(JSON.stringify(answer)) } : {}
}
