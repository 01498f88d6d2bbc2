import type { EngineKind } from '../../catalog/model.ts'

/** What a server answered to one GET. */
export interface ProbeAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  /** Undefined when the text is not JSON. */
  readonly json: unknown
}

/** By path. A path that did not answer in time is missing. */
export type ProbeAnswers = Readonly<Record<string, ProbeAnswer>>

/** Paths that identify a kind of server. None causes work; LiteLLM's /health, for one, would call every model. */
export const telltalePaths = [
  '/health/liveliness',
  '/props',
  '/version',
  '/api/version',
  '/info',
  '/get_model_info',
  '/v1/metadata',
  '/readyz',
  '/v1/models',
  '/models',
  '/',
  '/openapi.json',
] as const

export interface Recognition {
  readonly kind: EngineKind
  readonly server: string
  readonly version: string | undefined
  /** What identified it. */
  readonly evidence: string
}

interface Sign {
  readonly kind: EngineKind
  readonly server: string
  /** Which path to request, and what only this server has there. Returns its version, '' if it does not report one. */
  readonly at: (typeof telltalePaths)[number]
  readonly version: (answer: ProbeAnswer) => string | undefined
}

const field = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** The version in the answer, if the answer has all these fields. */
const withFields =
  (version: string, ...names: readonly string[]) =>
  ({ json }: ProbeAnswer): string | undefined =>
    names.every((name) => field(json, name) !== undefined) ? textOf(field(json, version)) : undefined

const ownedBy =
  (owner: string) =>
  ({ json }: ProbeAnswer): string | undefined =>
    modelsIn(json).some((model) => model.owner === owner) ? '' : undefined

const titled =
  (title: RegExp) =>
  ({ json }: ProbeAnswer): string | undefined => {
    const info = field(json, 'info')
    return title.test(textOf(field(info, 'title'))) ? textOf(field(info, 'version')) : undefined
  }

const containing =
  (words: RegExp) =>
  ({ status, text }: ProbeAnswer): string | undefined =>
    status === 200 && words.test(text) ? '' : undefined

/** The most reliable signs first: proxies and servers built on others answer some of the others' paths too. */
const signs: readonly Sign[] = [
  { kind: 'litellm', server: 'LiteLLM', at: '/health/liveliness', version: containing(/I'm alive!/) },
  { kind: 'nim', server: 'NVIDIA NIM', at: '/v1/metadata', version: withFields('version', 'modelInfo') },
  {
    kind: 'llamacpp',
    server: 'llama.cpp',
    at: '/props',
    version: withFields('build_info', 'default_generation_settings'),
  },
  { kind: 'llamacpp_python', server: 'llama-cpp-python', at: '/openapi.json', version: titled(/llama\.cpp Python/) },
  { kind: 'infinity', server: 'infinity', at: '/openapi.json', version: titled(/Infinity/) },
  { kind: 'infinity', server: 'infinity', at: '/models', version: ownedBy('infinity') },
  { kind: 'speaches', server: 'speaches', at: '/openapi.json', version: titled(/speaches/i) },
  {
    kind: 'tei',
    server: 'text-embeddings-inference',
    at: '/info',
    version: withFields('version', 'model_id', 'max_client_batch_size'),
  },
  { kind: 'sglang', server: 'SGLang', at: '/get_model_info', version: withFields('version', 'model_path') },
  { kind: 'sglang', server: 'SGLang', at: '/v1/models', version: ownedBy('sglang') },
  { kind: 'ollama', server: 'Ollama', at: '/', version: containing(/Ollama is running/) },
  { kind: 'localai', server: 'LocalAI', at: '/', version: containing(/LocalAI/) },
  { kind: 'whispercpp', server: 'whisper.cpp', at: '/', version: containing(/Whisper\.cpp Server/i) },
  { kind: 'vllm', server: 'vLLM', at: '/v1/models', version: ownedBy('vllm') },
]

/** Servers that are recognised by their host, because they are services. */
const hosts: Readonly<Record<string, Omit<Recognition, 'evidence'>>> = {
  'api.cohere.com': { kind: 'cohere', server: 'Cohere', version: undefined },
  'api.jina.ai': { kind: 'jina', server: 'Jina AI', version: undefined },
}

export function recognise(hostname: string, answers: ProbeAnswers): Recognition | undefined {
  const known = hosts[hostname]
  if (known) return { ...known, evidence: `the host ${hostname}` }
  for (const { kind, server, at, version } of signs) {
    const answer = answers[at]
    const found = answer && version(answer)
    if (found === undefined) continue
    return { kind, server, version: found || versionElsewhere(answers), evidence: `GET ${at}` }
  }
  const at = ['/v1/models', '/models'].find((path) => modelsIn(answers[path]?.json).length > 0)
  if (at === undefined) return undefined
  return { kind: 'openai', server: 'a server in the format of OpenAI', version: undefined, evidence: `GET ${at}` }
}

/** Some report their version at a path of its own, or in a header. */
function versionElsewhere(answers: ProbeAnswers): string | undefined {
  for (const answer of Object.values(answers)) {
    const version = answer.headers['x-litellm-version']
    if (version) return version
  }
  const paths = ['/version', '/api/version'] as const
  return paths.map((path) => textOf(field(answers[path]?.json, 'version'))).find((version) => version !== '')
}

export interface ListedModel {
  readonly id: string
  readonly owner: string
  readonly contextLength: number | undefined
}

/** The models in an answer in OpenAI's format. */
export function modelsIn(json: unknown): readonly ListedModel[] {
  const data = field(json, 'data')
  if (!Array.isArray(data)) return []
  return data.flatMap((item: unknown) => {
    const id = textOf(field(item, 'id'))
    if (id === '') return []
    const contextLength = whole(field(item, 'max_model_len')) ?? whole(field(field(item, 'meta'), 'n_ctx'))
    return [{ id, owner: textOf(field(item, 'owned_by')), contextLength }]
  })
}

/** How many tokens fit, if the server reports it outside its list of models. */
export function contextLengthIn(answers: ProbeAnswers): number | undefined {
  const settings = field(answers['/props']?.json, 'default_generation_settings')
  return whole(field(settings, 'n_ctx')) ?? whole(field(answers['/info']?.json, 'max_input_length'))
}

function whole(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : undefined
}
