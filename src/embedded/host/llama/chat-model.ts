import { LlamaGrammar } from 'node-llama-cpp'
import type { Llama, LlamaModel, Token } from 'node-llama-cpp'
import { contextLengthExceeded, EngineError } from '../runtime/engine-model.ts'
import type {
  ChatRequest,
  CompletionRequest,
  EngineModel,
  FinishReason,
  Sampling,
  TextEvent,
} from '../runtime/engine-model.ts'
import { StopText } from '../runtime/stop-text.ts'
import { AnswerParts } from './answer-parts.ts'
import type { AnswerPart } from './answer-parts.ts'
import { chatTemplate } from './chat-template.ts'
import { generateTokens } from './generation.ts'
import { jsonObjectGrammar, jsonSchemaGrammar } from './json-grammar.ts'
import { promptLogprobs } from './logprobs.ts'
import type { LlamaLoading } from './model-loading.ts'
import { sequencePool } from './sequence-pool.ts'
import { TokenText } from './token-text.ts'
import { forcedCallSchema, parseToolCall } from './tool-calls.ts'

/** A GGUF language model: its sequences share one context, so parallel requests share every batch. */
export async function loadChatModel({
  llama,
  model,
  options,
  contextTokens,
  sampling: defaults,
  pace,
  ignoreMemorySafetyChecks,
}: LlamaLoading): Promise<EngineModel> {
  const context = await model.createContext({
    sequences: options.parallelRequests,
    contextSize: contextTokens,
    threads: options.threads,
    ignoreMemorySafetyChecks,
  })
  const pool = sequencePool(context)
  const template = chatTemplate(model)
  const limit = Math.min(contextTokens, context.contextSize)

  async function* generate(work: TextWork, signal: AbortSignal): AsyncGenerator<TextEvent> {
    const { tokens, sampling, echo } = work
    if (tokens.length >= limit) throw contextLengthExceeded(limit, tokens.length + 1)
    const room = Math.min(sampling.maxTokens ?? Infinity, limit - tokens.length)
    const { sequence, cachedTokens } = await pool.hold(tokens, isReusable(work), signal)
    try {
      const promptTokens = tokens.length
      yield { kind: 'prompt', promptTokens, cachedTokens }
      const scores = work.scorePrompt
        ? await promptLogprobs(model, sequence, tokens, sampling.topLogprobs ?? 0)
        : undefined
      // The begin-of-sequence token is ours, not a part of the caller's prompt.
      const scored = scores?.slice(tokens[0] === model.tokens.bos ? 1 : 0)
      if (echo !== undefined)
        yield { kind: 'text', text: echo, completionTokens: 0, ...(scored ? { logprobs: scored } : {}) }

      const text = new TokenText(model, tokens)
      const stops = new StopText(sampling.stop)
      let completionTokens = 0
      let finishReason: FinishReason = 'stop'
      const answer = generateTokens({
        model,
        sequence,
        prompt: tokens,
        sampling,
        pace,
        signal,
        ...grammarOption(llama, work),
      })
      for await (const { token, logprob } of answer) {
        completionTokens++
        const shown = stops.push(text.push(token))
        if (shown !== '' || logprob) {
          yield { kind: 'text', text: shown, completionTokens, ...(logprob ? { logprobs: [logprob] } : {}) }
        }
        if (stops.stopped) break
        if (completionTokens >= room) {
          finishReason = 'length'
          break
        }
      }
      const rest = stops.stopped ? '' : stops.push(text.flush()) + stops.flush()
      if (rest !== '') yield { kind: 'text', text: rest, completionTokens }
      yield { kind: 'end', finishReason, completionTokens }
    } finally {
      pool.release(sequence)
    }
  }

  async function* chat(request: ChatRequest, signal: AbortSignal): AsyncGenerator<TextEvent> {
    if (request.messages.some((message) => message.images.length > 0)) {
      throw new EngineError(400, 'unsupported_content', 'This model does not take images.', 'messages')
    }
    const forced = forcedCallSchema(request)
    // A forced call is only its JSON: the opening tag is written for the model.
    const prompt = template.render(request) + (forced ? '<tool_call>\n' : '')
    const work: TextWork = {
      tokens: promptTokens(model, prompt),
      sampling: withDefaults(request.sampling, defaults),
      ...chatGrammar(request, forced),
    }
    const events = generate(work, signal)
    if (forced) yield* forcedCall(events)
    else {
      const thinks = template.thinks && request.format.kind === 'text'
      const startsThinking = thinks && prompt.trimEnd().endsWith('<think>')
      yield* sorted(events, new AnswerParts({ thinks, startsThinking, tools: request.toolChoice !== 'none' }))
    }
  }

  async function* complete(request: CompletionRequest, signal: AbortSignal): AsyncGenerator<TextEvent> {
    const { prompt, suffix, echo } = request
    const text = typeof prompt === 'string' ? prompt : model.detokenize([...prompt] as Token[], true)
    const tokens = suffix === undefined ? promptTokens(model, text) : infillTokens(model, text, suffix)
    const scorePrompt = echo && request.sampling.topLogprobs !== undefined
    const sampling = withDefaults(request.sampling, defaults)
    yield* generate({ tokens, sampling, scorePrompt, ...(echo ? { echo: text } : {}) }, signal)
  }

  const { ram, vram } = context.memoryUsage
  return {
    memoryBytes: model.size + ram + vram,
    chat,
    complete,
    async close() {
      await context.dispose()
      await model.dispose()
    },
  }
}

interface TextWork {
  tokens: readonly Token[]
  sampling: Sampling
  grammar?: string
  /** The prompt's own text, to be sent before the answer. */
  echo?: string
  scorePrompt?: boolean
}

/**
 * A seed asks for the same text again: the prompt is then evaluated afresh, because reused state was computed in other
 * batches and differs in the last digits. Scoring a prompt needs every one of its tokens evaluated.
 */
function isReusable({ sampling, scorePrompt }: TextWork): boolean {
  return sampling.seed === undefined && !scorePrompt
}

function grammarOption(llama: Llama, { grammar }: TextWork): { grammar?: LlamaGrammar } {
  return grammar === undefined ? {} : { grammar: new LlamaGrammar(llama, { grammar }) }
}

function chatGrammar(
  { format }: ChatRequest,
  forced: ReturnType<typeof forcedCallSchema>,
): { grammar: string } | undefined {
  if (forced) return { grammar: jsonSchemaGrammar(forced) }
  if (format.kind === 'json') return { grammar: jsonObjectGrammar() }
  return format.kind === 'json_schema' ? { grammar: jsonSchemaGrammar(format.schema) } : undefined
}

/**
 * What the model's makers recommend stands in for what the caller left open. Not their cuts of the distribution when log
 * probabilities are asked for: those should be the model's.
 */
function withDefaults(sampling: Sampling, defaults: Partial<Sampling>): Sampling {
  const { temperature } = defaults
  if (sampling.topLogprobs === undefined) return { ...defaults, ...sampling }
  return { ...(temperature === undefined ? {} : { temperature }), ...sampling }
}

function promptTokens(model: LlamaModel, text: string): Token[] {
  const tokens = model.tokenize(text, true)
  const { bos, shouldPrependBosToken } = model.tokens
  return shouldPrependBosToken && bos !== null && tokens[0] !== bos ? [bos, ...tokens] : tokens
}

function infillTokens(model: LlamaModel, prefix: string, suffix: string): Token[] {
  const { infill } = model.tokens
  if (infill.prefix === null || infill.suffix === null || infill.middle === null) {
    throw new EngineError(
      400,
      'unsupported_parameter',
      "This model was not trained to fill in before a 'suffix'.",
      'suffix',
    )
  }
  return [infill.prefix, ...model.tokenize(prefix), infill.suffix, ...model.tokenize(suffix), infill.middle]
}

async function* forcedCall(events: AsyncIterable<TextEvent>): AsyncGenerator<TextEvent> {
  let json = ''
  for await (const event of events) {
    if (event.kind === 'text') json += event.text
    else if (event.kind !== 'end') yield event
    else {
      const call = parseToolCall(json)
      const { completionTokens } = event
      if (call) yield { kind: 'tool_call', index: 0, ...call, completionTokens }
      // Cut off by max_tokens: there is no call, and the caller sees why.
      yield call ? { kind: 'end', finishReason: 'tool_calls', completionTokens } : event
    }
  }
}

async function* sorted(events: AsyncIterable<TextEvent>, parts: AnswerParts): AsyncGenerator<TextEvent> {
  let calls = 0
  const wrap = (part: AnswerPart, completionTokens: number): TextEvent => {
    if (part.kind !== 'tool_call') return { ...part, completionTokens }
    return { kind: 'tool_call', index: calls++, ...part.call, completionTokens }
  }
  for await (const event of events) {
    if (event.kind === 'text') {
      const found = parts.push(event.text)
      for (const part of found)
        yield { ...wrap(part, event.completionTokens), ...(event.logprobs ? { logprobs: event.logprobs } : {}) }
    } else if (event.kind === 'end') {
      for (const part of parts.flush()) yield wrap(part, event.completionTokens)
      yield calls > 0 ? { ...event, finishReason: 'tool_calls' } : event
    } else yield event
  }
}
