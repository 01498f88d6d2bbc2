import type { Config } from '../../config.ts'
import type { RequestRow } from '../../ledger/rows.ts'
import { labels, memo, type Metrics } from './metrics.ts'

/** What OpenTelemetry calls the operation of an endpoint. It has no names for the last ones. */
export const operations: Readonly<Record<string, string>> = {
  '/chat/completions': 'chat',
  '/responses': 'chat',
  '/messages': 'chat',
  '/completions': 'text_completion',
  '/embeddings': 'embeddings',
  '/images/generations': 'generate_content',
  '/rerank': 'rerank',
  '/reranking': 'rerank',
  '/audio/transcriptions': 'transcription',
  '/audio/translations': 'translation',
}

/** `former`: the names of tokens before 2026. Durations have kept theirs. */
export type GenAiNames = Config['genAiNames']

/**
 * The boundaries (ExplicitBucketBoundaries) of "Semantic conventions for generative AI metrics", which are still in
 * development: docs/gen-ai/gen-ai-metrics.md of open-telemetry/semantic-conventions-genai at 004902b, which is built on
 * version 1.42.0 of the general conventions. TOKENS are those of gen_ai.client.token.usage.
 */
const DURATION = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
const FIRST_TOKEN = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
const OUTPUT_TOKEN = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5]
const TOKENS = Array.from({ length: 14 }, (_, power) => 4 ** power)

/** A prompt of a chat may contain images, and engines count them with the text. */
const inputModality = (operation: string): string =>
  ['text_completion', 'embeddings', 'rerank'].includes(operation) ? 'text' : 'unknown'

type Recorder = (row: RequestRow, known: KnownLabels, traceId: string | undefined) => void

interface KnownLabels {
  readonly place: string
  readonly input: string
  readonly output: string
  readonly textInput: string
  readonly textOutput: string
  failure(type: string): string
}

/** Metrics by the names and with the units of OpenTelemetry's conventions for generative AI. */
export function genAiMetrics(
  metrics: Metrics,
  names: GenAiNames,
  engineKind: (lane: string) => string | undefined,
): (row: RequestRow, traceId: string | undefined) => void {
  const recorders = [
    durations(metrics),
    ...(names === 'former' ? [] : [tokens(metrics)]),
    ...(names === 'current' ? [] : [formerTokens(metrics)]),
  ]
  const labelsOf = memo((endpoint: string) =>
    memo((model: string) => memo((kind: string) => knownLabels(operations[endpoint] ?? endpoint, model, kind))),
  )
  return (row, traceId) => {
    const known = labelsOf(row.endpoint)(row.model)(engineKind(row.lane) ?? 'weir')
    for (const record of recorders) record(row, known, traceId)
  }
}

function knownLabels(operation: string, model: string, kind: string): KnownLabels {
  const place = { gen_ai_operation_name: operation, gen_ai_request_model: model, gen_ai_provider_name: kind }
  return {
    place: labels(place),
    input: labels({ ...place, gen_ai_token_type: 'input' }),
    output: labels({ ...place, gen_ai_token_type: 'output' }),
    textInput: labels({ ...place, gen_ai_token_modality: inputModality(operation) }),
    textOutput: labels({ ...place, gen_ai_token_modality: 'text' }),
    failure: memo((type: string) => labels({ ...place, error_type: type })),
  }
}

function durations(metrics: Metrics): Recorder {
  const duration = metrics.histogram('gen_ai_server_request_duration_seconds', DURATION)
  const firstToken = metrics.histogram('gen_ai_server_time_to_first_token_seconds', FIRST_TOKEN)
  const outputToken = metrics.histogram('gen_ai_server_time_per_output_token_seconds', OUTPUT_TOKEN)
  return ({ outcome, errorCode, queueWaitMs, firstTokenMs, durationMs, outputTokens }, known, traceId) => {
    // Prometheus treats an empty label as a missing one.
    const type = errorCode ?? (outcome === 'completed' ? '' : outcome)
    duration.observe(known.failure(type), (queueWaitMs + durationMs) / 1000, traceId)
    if (type !== '' || firstTokenMs === null) return
    firstToken.observe(known.place, (queueWaitMs + firstTokenMs) / 1000, traceId)
    if (outputTokens <= 1) return
    outputToken.observe(known.place, (durationMs - firstTokenMs) / 1000 / (outputTokens - 1), traceId)
  }
}

function tokens(metrics: Metrics): Recorder {
  const input = metrics.counter('gen_ai_client_inference_usage_input_tokens_total')
  const cached = metrics.counter('gen_ai_client_inference_usage_cache_read_input_tokens_total')
  const output = metrics.counter('gen_ai_client_inference_usage_output_tokens_total')
  const inputs = metrics.histogram('gen_ai_client_inference_operation_input_tokens', TOKENS)
  const outputs = metrics.histogram('gen_ai_client_inference_operation_output_tokens', TOKENS)
  return ({ inputTokens, cachedInputTokens, outputTokens }, { place, textInput, textOutput }, traceId) => {
    input.add(textInput, inputTokens)
    cached.add(textInput, cachedInputTokens)
    output.add(textOutput, outputTokens)
    inputs.observe(place, inputTokens, traceId)
    outputs.observe(place, outputTokens, traceId)
  }
}

function formerTokens(metrics: Metrics): Recorder {
  const usage = metrics.histogram('gen_ai_client_token_usage', TOKENS)
  return ({ inputTokens, outputTokens }, known, traceId) => {
    usage.observe(known.input, inputTokens, traceId)
    usage.observe(known.output, outputTokens, traceId)
  }
}
