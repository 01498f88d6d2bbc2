import type { EngineKind } from '../../catalog/model.ts'

/**
 * What each kind of engine does with each parameter. Nothing a caller sends is silently lost: a parameter is forwarded,
 * translated, done by Weir itself, or refused before any work. docs/engines.md is written from this table.
 */

/** How text is generated, in chats and in text completions. */
const sampling = [
  'temperature',
  'top_p',
  'top_k',
  'min_p',
  'frequency_penalty',
  'presence_penalty',
  'repetition_penalty',
  'logit_bias',
  'seed',
  'stop',
  'n',
] as const

/** The parameters that an engine may have to support. Weir handles all others itself. */
export const engineParameters = {
  chat: [
    ...sampling,
    'logprobs',
    'top_logprobs',
    'response_format',
    'tools',
    'tool_choice',
    'parallel_tool_calls',
    'reasoning_effort',
    'chat_template_kwargs',
  ],
  completions: [...sampling, 'best_of', 'logprobs', 'echo', 'suffix'],
  embeddings: ['dimensions'],
  ranking: ['max_tokens_per_doc'],
  images: ['quality', 'style', 'background', 'output_format', 'seed', 'negative_prompt', 'steps'],
  speech: ['language', 'prompt', 'temperature', 'response_format', 'timestamp_granularities'],
} as const

export type EngineOperation = keyof typeof engineParameters

/**
 * - `taken`: forwarded under its own name.
 * - `weir`: Weir does it itself, so the engine never sees it.
 * - `refused`: the engine ignores it or cannot do it, so Weir refuses the request.
 */
export type ParameterSupport = 'taken' | 'weir' | 'refused' | Translation

/** The engine uses another name for the parameter, or another value. */
export interface Translation {
  readonly as: string
  /** Given the whole request, because a value may have to be merged with another parameter. */
  value?(value: unknown, request: Readonly<Record<string, unknown>>): unknown
}

export type SupportByName = Readonly<Record<string, ParameterSupport>>

type SupportOf<Name extends EngineOperation> = Readonly<
  Record<(typeof engineParameters)[Name][number], ParameterSupport>
>

type KindSupport = { readonly [Name in EngineOperation]?: SupportOf<Name> }

function allTaken<Name extends EngineOperation>(operation: Name): SupportOf<Name> {
  const names: readonly string[] = engineParameters[operation]
  return Object.fromEntries(names.map((name) => [name, 'taken'])) as SupportOf<Name>
}

const chat = allTaken('chat')
const completions = allTaken('completions')
const embeddings = allTaken('embeddings')
const images = allTaken('images')
const speech = allTaken('speech')
const cutByEngine: SupportOf<'ranking'> = { max_tokens_per_doc: 'taken' }
const cutByWeir: SupportOf<'ranking'> = { max_tokens_per_doc: 'weir' }

/** llama.cpp's own name for it. */
const repeatPenalty: Translation = { as: 'repeat_penalty' }

/** Every version of llama.cpp's server passes these arguments to the template; older ones ignore reasoning_effort. */
const effortForTemplate: Translation = {
  as: 'chat_template_kwargs',
  value: (effort, { chat_template_kwargs: given }) => ({
    reasoning_effort: effort,
    ...(effort === 'none' ? { enable_thinking: false } : {}),
    ...(given as object | undefined),
  }),
}

/** -1 and 0 both switch it off. This server accepts only 0. */
const topKFromZero: Translation = { as: 'top_k', value: (count) => Math.max(0, Number(count)) }

/** It takes a schema only together with the type json_object. */
const schemaInJsonObject: Translation = {
  as: 'response_format',
  value(format) {
    const { type, json_schema: wrapped } = format as { type: string; json_schema?: { schema?: object } }
    return type === 'json_schema' ? { type: 'json_object', schema: wrapped?.schema ?? {} } : format
  },
}

const vllm: KindSupport = {
  chat,
  completions: { ...completions, best_of: 'refused', suffix: 'refused' },
  embeddings,
  ranking: cutByEngine,
  speech,
}

/** Everything is forwarded to an unknown server. */
const anything: KindSupport = { chat, completions, embeddings, ranking: cutByWeir, images, speech }

export const parameterSupport: Readonly<Record<EngineKind, KindSupport>> = {
  embedded: {
    chat: { ...chat, logit_bias: 'refused', reasoning_effort: 'refused' },
    completions: { ...completions, logit_bias: 'refused', best_of: 'refused' },
    embeddings,
    ranking: cutByEngine,
    images: { ...images, quality: 'refused', style: 'refused', background: 'refused', output_format: 'refused' },
    speech,
  },
  openai: anything,
  vllm,
  sglang: {
    chat,
    completions: { ...completions, best_of: 'refused', suffix: 'refused' },
    embeddings,
    ranking: cutByWeir,
  },
  llamacpp: {
    chat: { ...chat, repetition_penalty: repeatPenalty, n: 'weir', reasoning_effort: effortForTemplate },
    completions: {
      ...completions,
      repetition_penalty: repeatPenalty,
      n: 'weir',
      best_of: 'refused',
      echo: 'refused',
      suffix: 'refused',
    },
    embeddings: { dimensions: 'refused' },
    ranking: cutByWeir,
  },
  llamacpp_python: {
    chat: {
      ...chat,
      top_k: topKFromZero,
      repetition_penalty: repeatPenalty,
      n: 'weir',
      response_format: schemaInJsonObject,
      parallel_tool_calls: 'refused',
      reasoning_effort: 'refused',
      chat_template_kwargs: 'refused',
    },
    completions: {
      ...completions,
      top_k: topKFromZero,
      repetition_penalty: repeatPenalty,
      n: 'weir',
      best_of: 'refused',
    },
    embeddings: { dimensions: 'refused' },
  },
  ollama: {
    chat: {
      ...chat,
      top_k: 'refused',
      min_p: 'refused',
      repetition_penalty: 'refused',
      logit_bias: 'refused',
      n: 'weir',
      tool_choice: 'refused',
      parallel_tool_calls: 'refused',
      chat_template_kwargs: 'refused',
    },
    completions: {
      ...completions,
      top_k: 'refused',
      min_p: 'refused',
      repetition_penalty: 'refused',
      logit_bias: 'refused',
      n: 'weir',
      best_of: 'refused',
      echo: 'refused',
    },
    embeddings,
  },
  tei: { embeddings, ranking: cutByWeir },
  infinity: { embeddings, ranking: cutByWeir },
  nim: { chat, completions: vllm.completions!, embeddings, ranking: cutByWeir },
  litellm: anything,
  cohere: { ranking: cutByEngine },
  jina: { embeddings, ranking: cutByWeir },
  localai: {
    chat: {
      ...chat,
      repetition_penalty: repeatPenalty,
      parallel_tool_calls: 'refused',
      chat_template_kwargs: 'refused',
    },
    completions: { ...completions, repetition_penalty: repeatPenalty, best_of: 'refused', suffix: 'refused' },
    embeddings: { dimensions: 'refused' },
    ranking: cutByWeir,
    images: { ...images, style: 'refused', background: 'refused', output_format: 'refused', steps: { as: 'step' } },
    speech,
  },
  sdcpp: { images: { ...images, quality: 'refused', style: 'refused', background: 'refused' } },
  speaches: { speech },
  whispercpp: { speech },
}

/** By parameter. Empty when the kind does not offer the operation. */
export function supportFor(kind: EngineKind, operation: EngineOperation): SupportByName {
  return parameterSupport[kind][operation] ?? {}
}
