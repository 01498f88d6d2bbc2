import { LlamaGrammar, type Llama, type LlamaModel, type Token } from 'node-llama-cpp'
import { HostError } from '../runtime/host-error.ts'
import { contextLengthExceeded } from '../runtime/context-length.ts'
import type {
  CompletionRequest,
  EngineChatRequest,
  EngineModel,
  FinishReason,
  Sampling,
  TextEvent,
} from '../runtime/engine-model.ts'
import type { JsonObject } from '../runtime/json-value.ts'
import { stopText } from '../runtime/stop-text.ts'
import { answerParts } from './answer-parts.ts'
import { forcedCall, splitAnswer } from './chat-events.ts'
import { chatTemplate } from './chat-template.ts'
import { generateTokens } from './generation.ts'
import { jsonObjectGrammar, jsonSchemaGrammar } from './json-grammar.ts'
import { promptLogprobs } from './logprobs.ts'
import type { LlamaLoading } from './model-loading.ts'
import { sequencePool } from './sequence-pool.ts'
import { tokenText } from './token-text.ts'
import { forcedCallSchema } from './tool-calls.ts'

/** One answer to generate. */
interface TextWork {
  readonly tokens: readonly Token[]
  readonly sampling: Sampling
  readonly grammar?: string
  /** The prompt's own text, to be sent before the answer. */
  readonly echo?: string
  readonly scorePrompt?: boolean
}

/** A GGUF language model. Its sequences share one context, so that parallel requests share every batch. */
export async function loadChatModel(loading: LlamaLoading): Promise<EngineModel> {
  const { llama, model, options, contextTokens, pace } = loading
  const context = await model.createContext({
    sequences: options.parallelRequests,
    contextSize: contextTokens,
    threads: options.threads,
    ignoreMemorySafetyChecks: loading.ignoreMemorySafetyChecks,
  })
  const pool = sequencePool(context)
  const template = chatTemplate(model)
  const limit = Math.min(contextTokens, context.contextSize)

  async function* generate(work: TextWork, signal: AbortSignal): AsyncGenerator<TextEvent> {
    const { tokens, sampling, echo } = work
    if (tokens.length >= limit) throw contextLengthExceeded(limit, tokens.length + 1)
    const room = Math.min(sampling.maxTokens ?? Infinity, limit - tokens.length)
    const { sequence, cachedTokens } = await pool.acquire(tokens, mayReuse(work), signal)
    try {
      yield { kind: 'prompt', promptTokens: tokens.length, cachedTokens }
      const scores = work.scorePrompt
        ? await promptLogprobs(model, sequence, tokens, sampling.topLogprobs ?? 0)
        : undefined
      // We added the begin-of-sequence token; it is not part of the caller's prompt.
      const logprobs = scores?.slice(tokens[0] === model.tokens.bos ? 1 : 0)
      if (echo !== undefined) yield { kind: 'text', text: echo, completionTokens: 0, ...(logprobs ? { logprobs } : {}) }

      const text = tokenText(model, tokens)
      const stops = stopText(sampling.stop)
      let completionTokens = 0
      let finishReason: FinishReason = 'stop'
      const grammar = grammarOption(llama, work)
      const answer = generateTokens({ model, sequence, prompt: tokens, sampling, pace, signal, ...grammar })
      for await (const { token, logprob } of answer) {
        completionTokens++
        const shown = stops.push(text.push(token))
        if (shown !== '' || logprob) {
          yield { kind: 'text', text: shown, completionTokens, ...(logprob ? { logprobs: [logprob] } : {}) }
        }
        if (stops.found() !== undefined) break
        if (completionTokens >= room) {
          finishReason = 'length'
          break
        }
      }
      const rest = stops.found() === undefined ? stops.push(text.flush()) + stops.flush() : ''
      if (rest !== '') yield { kind: 'text', text: rest, completionTokens }
      yield { kind: 'end', finishReason, completionTokens }
    } finally {
      pool.release(sequence)
    }
  }

  async function* chat(request: EngineChatRequest, signal: AbortSignal): AsyncGenerator<TextEvent> {
    if (request.messages.some((message) => message.images.length > 0)) {
      throw new HostError('unsupported_content', 'This model does not accept images.', { param: 'messages' })
    }
    const forced = forcedCallSchema(request)
    // A forced call consists of its JSON alone: we write the opening tag for the model.
    const prompt = template.render(request) + (forced ? '<tool_call>\n' : '')
    const work: TextWork = {
      tokens: promptTokens(model, prompt),
      sampling: withDefaults(request.sampling, loading.sampling),
      ...chatGrammar(request, forced),
    }
    const events = generate(work, signal)
    if (forced) return yield* forcedCall(events)
    const thinks = template.thinks && request.format.kind === 'text'
    const startsThinking = thinks && prompt.trimEnd().endsWith('<think>')
    const callable = request.toolChoice === 'none' ? [] : request.tools.map(({ name }) => name)
    const parts = answerParts({ thinks, startsThinking, tools: callable })
    yield* splitAnswer(events, parts, request.parallelToolCalls ? Infinity : 1)
  }

  async function* complete(request: CompletionRequest, signal: AbortSignal): AsyncGenerator<TextEvent> {
    const { prompt, suffix, echo } = request
    const text = typeof prompt === 'string' ? prompt : model.detokenize([...prompt] as Token[], true)
    const tokens = suffix === undefined ? promptTokens(model, text) : infillTokens(model, text, suffix)
    const scorePrompt = echo && request.sampling.topLogprobs !== undefined
    const sampling = withDefaults(request.sampling, loading.sampling)
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

/**
 * A seed asks for the same text again, so its prompt is evaluated from the start: reused state was computed in other
 * batches and differs in the last digits. Scoring a prompt needs every one of its tokens evaluated.
 */
function mayReuse({ sampling, scorePrompt }: TextWork): boolean {
  return sampling.seed === undefined && !scorePrompt
}

function grammarOption(llama: Llama, { grammar }: TextWork): { readonly grammar?: LlamaGrammar } {
  return grammar === undefined ? {} : { grammar: new LlamaGrammar(llama, { grammar }) }
}

function chatGrammar(
  { format }: EngineChatRequest,
  forced: JsonObject | undefined,
): { readonly grammar: string } | undefined {
  if (forced) return { grammar: jsonSchemaGrammar(forced) }
  if (format.kind === 'json') return { grammar: jsonObjectGrammar() }
  return format.kind === 'json_schema' ? { grammar: jsonSchemaGrammar(format.schema) } : undefined
}

/**
 * Parameters that the caller left out are those the model's makers recommend. When log probabilities are asked for, only
 * the temperature is: top_p and the like would cut the distribution that the caller wants to see.
 */
function withDefaults(sampling: Sampling, defaults: Partial<Sampling>): Sampling {
  if (sampling.topLogprobs === undefined) return { ...defaults, ...sampling }
  const { temperature } = defaults
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
    throw new HostError('unsupported_parameter', "This model was not trained to fill in text before a 'suffix'.", {
      param: 'suffix',
    })
  }
  return [infill.prefix, ...model.tokenize(prefix), infill.suffix, ...model.tokenize(suffix), infill.middle]
}
