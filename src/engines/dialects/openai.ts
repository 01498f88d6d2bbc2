import type {
  Dialect,
  EmbeddingsDialect,
  GenerationDialect,
  ImagesDialect,
  RankingDialect,
  SpeechDialect,
} from './dialect.ts'
import { finiteNumber, inputTokensOf, asList, asRecord, wholeNumber } from './reading.ts'

/** OpenAI's dialect. Most servers follow it in part, so the other dialects reuse these pieces. */

export const includeUsage = { stream_options: { include_usage: true } }
/** For vLLM and SGLang: usage in every chunk, so that an aborted stream can be billed. */
export const runningUsage = { stream_options: { include_usage: true, continuous_usage_stats: true } }

export function generation(path: string, streamFields: GenerationDialect['streamFields']): GenerationDialect {
  return { path, streamFields }
}

export const openaiEmbeddings: EmbeddingsDialect = {
  batchSize: 2048,
  request: ({ model, texts, dimensions, base64 }) => ({
    path: '/embeddings',
    body: {
      model,
      input: texts,
      encoding_format: base64 ? 'base64' : 'float',
      ...(dimensions === undefined ? {} : { dimensions }),
    },
  }),
  response(body) {
    const data = asList(asRecord(body)['data'])
    if (!data) return undefined
    const vectors: (readonly number[] | string)[] = []
    for (const [position, item] of data.entries()) {
      const { index, embedding } = asRecord(item)
      if (typeof embedding !== 'string' && !Array.isArray(embedding)) return undefined
      vectors[wholeNumber(index) ?? position] = embedding as readonly number[] | string
    }
    return { vectors, inputTokens: inputTokensOf(body) }
  },
}

/** The most documents a caller may send, so that a request is never split. */
export const ALL_DOCUMENTS = 1000

/** Cohere's and Jina's schema, in the form most servers support. */
export function plainRanking(scale: RankingDialect['scale']): RankingDialect {
  return {
    scale,
    batchSize: ALL_DOCUMENTS,
    request: ({ model, query, documents }) => ({ path: '/rerank', body: { model, query, documents } }),
    response: (body) => readScores(asList(asRecord(body)['results']), 'relevance_score', inputTokensOf(body)),
  }
}

/** The same schema with Cohere's token limit per document. */
export const cohereRanking: RankingDialect = {
  ...plainRanking('probability'),
  cutsDocuments: true,
  request: ({ model, query, documents, maxTokensPerDocument }) => ({
    path: '/rerank',
    body: {
      model,
      query,
      documents,
      ...(maxTokensPerDocument === undefined ? {} : { max_tokens_per_doc: maxTokensPerDocument }),
    },
  }),
}

/** `[{index, <name>: score}]`, in any order. */
export function readScores(
  items: readonly unknown[] | undefined,
  name: string,
  inputTokens: number | undefined,
): { scores: { index: number; score: number }[]; inputTokens: number | undefined } | undefined {
  if (!items) return undefined
  const scores: { index: number; score: number }[] = []
  for (const item of items) {
    const index = wholeNumber(asRecord(item)['index'])
    const score = finiteNumber(asRecord(item)[name])
    if (index === undefined || score === undefined) return undefined
    scores.push({ index, score })
  }
  return { scores, inputTokens }
}

export const openaiImages: ImagesDialect = {
  batchSize: 10,
  request: ({ model, prompt, count, size, parameters }) => ({
    path: '/images/generations',
    body: { model, prompt, n: count, ...(size ? { size } : {}), response_format: 'b64_json', ...parameters },
  }),
  response(body) {
    const data = asList(asRecord(body)['data'])
    if (!data || data.length === 0) return undefined
    const images: { base64: string; revisedPrompt?: string }[] = []
    for (const item of data) {
      const { b64_json: base64, revised_prompt: revisedPrompt } = asRecord(item)
      if (typeof base64 !== 'string') return undefined
      images.push({ base64, ...(typeof revisedPrompt === 'string' ? { revisedPrompt } : {}) })
    }
    return { images }
  },
}

export const openaiSpeech: SpeechDialect = {
  request: ({ model, task, language, prompt, temperature, words, textOnly }) => ({
    path: task === 'translate' ? '/audio/translations' : '/audio/transcriptions',
    fields: {
      model,
      response_format: textOnly ? 'json' : 'verbose_json',
      ...(language === undefined || task === 'translate' ? {} : { language }),
      ...(prompt === undefined ? {} : { prompt }),
      ...(temperature === undefined ? {} : { temperature: String(temperature) }),
      // Asking for words alone would return no segments.
      ...(words && !textOnly ? { 'timestamp_granularities[]': ['word', 'segment'] } : {}),
    },
  }),
  refusesSegments: refusesVerboseJson,
  response: readSpeech,
}

/** "response_format 'verbose_json' is not compatible with model …" and similar messages. */
function refusesVerboseJson(refusal: string): boolean {
  return /response_?format|verbose_json/i.test(refusal)
}

/** Reads verbose_json, or plain json from a server that supports nothing else. */
export function readSpeech(body: unknown): ReturnType<SpeechDialect['response']> {
  const { text, language, segments, words, duration, usage } = asRecord(body)
  if (typeof text !== 'string') return undefined
  // Some servers write it as text, and plain json has it in the usage.
  const seconds = Number(duration ?? asRecord(usage)['seconds'])
  return {
    text,
    seconds: Number.isFinite(seconds) ? seconds : undefined,
    language: typeof language === 'string' ? language : undefined,
    segments: asList(segments)?.map(asRecord),
    words: (asList(words) ?? asList(segments)?.flatMap((segment) => asList(asRecord(segment)['words']) ?? []))?.map(
      asRecord,
    ),
  }
}

export const openai: Dialect = {
  // This kind covers any compatible server: those without running usage, which ignore the option, and
  // llama-cpp-python's, which hides its refusals.
  chat: { ...generation('/chat/completions', runningUsage), hidesRefusalsOfStreams: true },
  completions: { ...generation('/completions', runningUsage), hidesRefusalsOfStreams: true },
  embeddings: openaiEmbeddings,
  ranking: plainRanking('probability'),
  images: openaiImages,
  speech: openaiSpeech,
}
