import { stringify } from 'yaml'
import type { EngineKind } from '../../catalog/model.ts'
import type { Finding, QuestionName } from './doctor-engine-questions.ts'

export interface ExaminedEngine {
  readonly kind: EngineKind
  readonly url: string
  readonly model: string
  readonly contextLength: number | undefined
  readonly hasApiKey: boolean
  readonly findings: readonly Finding[]
}

/** Used if the server does not report it. */
const GUESSED_CONTEXT = 4096
const KEY_VARIABLE = 'ENGINE_API_KEY'

const usualParameters = ['temperature', 'top_p', 'stop', 'seed']
const parametersOf: Partial<Readonly<Record<QuestionName, readonly string[]>>> = {
  n: ['n'],
  logprobs: ['logprobs', 'top_logprobs'],
  tools: ['tools', 'tool_choice'],
  'json schema': ['response_format'],
}

/** The lines for weir.yaml: an entry that the catalog accepts unchanged, with prices left to the operator. */
export function catalogLines(engine: ExaminedEngine): string {
  const { kind, url, model, contextLength, hasApiKey, findings } = engine
  const can = (question: QuestionName): boolean =>
    findings.some((finding) => finding.question === question && finding.state === 'yes')
  const categories = [
    ...(can('chat') ? ['llm'] : []),
    ...(can('embeddings') ? ['embedding'] : []),
    ...(can('rerank') ? ['reranker'] : []),
  ]
  const extra = Object.entries(parametersOf).flatMap(([name, names]) => (can(name as QuestionName) ? names : []))
  const prices = { input_per_million: '0', ...(can('chat') ? { output_per_million: '0' } : {}) }
  const key = hasApiKey ? { api_key_env: KEY_VARIABLE } : {}
  const entry = {
    id: slugOf(model),
    categories: categories.length > 0 ? categories : ['llm'],
    context_length: contextLength ?? GUESSED_CONTEXT,
    ...(can('chat') ? { supported_parameters: [...usualParameters, ...extra] } : {}),
    ...(can('rerank') ? { rerank_schema: 'documents' } : {}),
    pricing: prices,
    serverless: { engine: { kind, urls: [url], model, ...key } },
  }
  const notes = [
    '# Set your prices: A$ per million tokens.',
    ...(contextLength === undefined
      ? ['# The server does not say how long its context is: check context_length.']
      : []),
    ...(hasApiKey ? [`# Put the server's key into the environment variable ${KEY_VARIABLE}.`] : []),
  ]
  return `${notes.join('\n')}\n${stringify({ models: [entry] }, { lineWidth: 0 })}`
}

/** A name for callers, from the server's: `/models/Qwen 2.gguf` becomes `local/Qwen-2`. */
function slugOf(model: string): string {
  const parts = model
    .replace(/\.gguf$/i, '')
    .split('/')
    .filter(Boolean)
    .map((part) => part.replaceAll(/[^a-zA-Z0-9._-]/g, '-').replace(/^[^a-zA-Z0-9]+/, ''))
    .filter(Boolean)
  const name = (parts.at(-1) ?? 'model').slice(0, 128)
  const provider = model.startsWith('/') || model.endsWith('.gguf') ? undefined : parts.at(-2)
  return `${(provider ?? 'local').toLowerCase().slice(0, 64)}/${name}`
}
