import type { EngineKind } from '../../catalog/model.ts'
import { counted } from '../../shared/counts.ts'
import type { EngineClient } from './doctor-engine-client.ts'
import type { ProbeAnswer } from './doctor-engine-recognition.ts'

/** What a question finds out about a server. */
export interface QuestionAnswer {
  readonly state: 'yes' | 'no'
  readonly detail: string
}

export interface Finding extends QuestionAnswer {
  readonly question: QuestionName
  /** Which option of the server, or of its catalog entry, changes a "no". */
  readonly fix?: string
}

export type QuestionName =
  | 'chat'
  | 'stream'
  | 'usage'
  | 'stop reason'
  | 'abort'
  | 'n'
  | 'logprobs'
  | 'tools'
  | 'tool stream'
  | 'reasoning'
  | 'json schema'
  | 'embeddings'
  | 'rerank'

interface QuestionSubject {
  readonly client: EngineClient
  readonly kind: EngineKind
  readonly model: string
}

type Question = (subject: QuestionSubject) => Promise<QuestionAnswer>

// oxlint-disable-next-line typescript/no-explicit-any -- whatever an unknown server sends
type Json = any

const yes = (detail: string): QuestionAnswer => ({ state: 'yes', detail })
const no = (detail: string): QuestionAnswer => ({ state: 'no', detail })

const CHAT = '/chat/completions'
const short = { messages: [{ role: 'user', content: 'Say hello.' }], max_tokens: 8, temperature: 0 }
const long = {
  messages: [{ role: 'user', content: 'Count from 1 to 1000 in words.' }],
  max_tokens: 300,
  temperature: 0,
}
const withUsage = { stream_options: { include_usage: true } }
const TOKENS_BEFORE_LEAVING = 3
const weather = {
  messages: [{ role: 'user', content: 'What is the weather in Paris? Use the tool.' }],
  max_tokens: 64,
  temperature: 0,
  tools: [
    {
      type: 'function',
      function: {
        name: 'get_weather',
        description: 'Get the weather',
        parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
      },
    },
  ],
}

/** In the order they are asked. All are harmless: a few tokens, one text, two documents. */
export const questions: Readonly<Record<QuestionName, Question>> = {
  async chat({ client, model }) {
    const answer = await client.post(CHAT, { model, ...short })
    if (!choicesOf(answer)) return refused(answer)
    return yes(usageText(field(answer.json, 'usage')))
  },
  async stream({ client, model }) {
    const { status, events, isDone, text } = await client.stream(CHAT, { model, ...short, ...withUsage })
    if (events.length === 0) return no(text ? refusalText(status, text) : `status ${status} and no events`)
    const usage = events.map((event) => field(event, 'usage')).findLast(Boolean)
    return yes(`${counted(events.length, 'event')}, ${usageText(usage)}${isDone ? '' : ', without [DONE]'}`)
  },
  async usage({ client, model }) {
    const answer = await client.post(CHAT, { model, ...short })
    if (!choicesOf(answer)) return refused(answer)
    const { events } = await client.stream(CHAT, { model, ...short, ...withUsage })
    const missing = [
      ...(hasUsage(answer.json) ? [] : ['an answer']),
      ...(events.some(hasUsage) ? [] : ['a stream with include_usage']),
    ]
    return missing.length === 0 ? yes('in answers and in streams') : no(`none in ${missing.join(' and in ')}`)
  },
  async 'stop reason'({ client, model }) {
    const cut = await client.post(CHAT, { model, ...long, max_tokens: 8 })
    const [choice] = choicesOf(cut) ?? []
    if (!choice) return refused(cut)
    if (choice.finish_reason !== 'length') return no(`${reasonText(choice)} for an answer that max_tokens cut off`)
    const { events } = await client.stream(CHAT, { model, ...long, max_tokens: 8 })
    const reason = events.flatMap((event) => choicesIn(event)).findLast((it) => it.finish_reason)
    return reason?.finish_reason === 'length'
      ? yes('length for an answer that max_tokens cut off')
      : no(`${reasonText(reason)} for a stream that max_tokens cut off`)
  },
  async abort({ client, model }) {
    const enough = (events: readonly unknown[]): boolean => events.length > TOKENS_BEFORE_LEAVING
    const { events } = await client.stream(CHAT, { model, ...long, ...withUsage }, enough)
    if (events.length === 0) return no('there is no stream to leave')
    const left = performance.now()
    const next = await client.post(CHAT, { model, ...short, max_tokens: 1 })
    const ms = Math.round(performance.now() - left)
    return choicesOf(next) ? yes(`the next call was answered ${ms} ms after a caller left`) : refused(next)
  },
  async n({ client, model }) {
    const answer = await client.post(CHAT, { model, ...short, n: 2 })
    const choices = choicesOf(answer)
    if (!choices) return refused(answer)
    return choices.length === 2 ? yes('two choices') : no(`${counted(choices.length, 'choice')} for n: 2`)
  },
  async logprobs({ client, model }) {
    const answer = await client.post(CHAT, { model, ...short, max_tokens: 2, logprobs: true, top_logprobs: 2 })
    const [choice] = choicesOf(answer) ?? []
    if (!choice) return refused(answer)
    const content = choice.logprobs?.content
    return Array.isArray(content) && content.length > 0
      ? yes(`for ${counted(content.length, 'token')}`)
      : no('none in the answer')
  },
  async tools({ client, model }) {
    const answer = await client.post(CHAT, { model, ...weather })
    const [choice] = choicesOf(answer) ?? []
    if (!choice) return refused(answer)
    const { content, tool_calls: calls } = choice.message ?? {}
    if (calls?.[0]?.function?.name !== 'get_weather') return no(callMissing(content))
    if (!isCity(calls[0].function.arguments)) return no('the arguments of the call are not JSON for its schema')
    return endsCall(choice) ? yes('the model called the tool') : no(`${reasonText(choice)} instead of tool_calls`)
  },
  async 'tool stream'({ client, model }) {
    const { status, events, text } = await client.stream(CHAT, { model, ...weather })
    if (events.length === 0) return no(text ? refusalText(status, text) : `status ${status} and no events`)
    const choices = events.flatMap((event) => choicesIn(event))
    const pieces = choices.flatMap((it): Json[] => it.delta?.tool_calls ?? [])
    const content = choices.map((it) => it.delta?.content ?? '').join('')
    const [first] = pieces
    if (!first) return no(callMissing(content))
    if (first.function?.name !== 'get_weather' || !first.id) return no('the first piece has no id or no name')
    // The model may make other calls after the first one.
    const own = pieces.filter((it) => it.index === 0)
    if (!isCity(own.map((it) => it.function?.arguments ?? '').join(''))) {
      return no('the pieces with index 0 do not make up the JSON of the arguments')
    }
    const last = choices.findLast((it) => it.finish_reason)
    return endsCall(last) ? yes(counted(own.length, 'piece')) : no(`${reasonText(last)} instead of tool_calls`)
  },
  async reasoning({ client, model }) {
    const messages = [{ role: 'user', content: 'Is 7 a prime number?' }]
    const answer = await client.post(CHAT, { model, messages, max_tokens: 256, temperature: 0 })
    const [choice] = choicesOf(answer) ?? []
    if (!choice) return refused(answer)
    const { content, reasoning_content: deepseek, reasoning } = choice.message ?? {}
    if (['<think>', '</think>'].some((tag) => String(content).includes(tag))) {
      return no('the reasoning is in the text of the answer, with its tags')
    }
    if (deepseek) return yes('in reasoning_content')
    return yes(reasoning ? 'in reasoning' : 'none, and no tags in the text')
  },
  async 'json schema'({ client, model }) {
    const properties = { city: { type: 'string', maxLength: 20 } }
    const schema = { type: 'object', properties, required: ['city'], additionalProperties: false }
    const messages = [{ role: 'user', content: 'Name the capital of France.' }]
    const format = { type: 'json_schema', json_schema: { name: 'city', strict: true, schema } }
    const answer = await client.post(CHAT, { model, messages, max_tokens: 64, temperature: 0, response_format: format })
    const [choice] = choicesOf(answer) ?? []
    if (!choice) return refused(answer)
    return isCity(choice.message?.content) ? yes('the answer follows it') : no('the answer does not follow it')
  },
  async embeddings({ client, kind, model }) {
    const input = ['A weir holds water.']
    const answer = await (kind === 'tei'
      ? client.post('//embed', { inputs: input })
      : client.post('/embeddings', { model, input }))
    const json = answer.json as Json
    const vector = kind === 'tei' ? json?.[0] : json?.data?.[0]?.embedding
    if (!Array.isArray(vector)) return refused(answer)
    return yes(`${vector.length} numbers, ${kind === 'tei' ? 'usage in a header' : usageText(json.usage)}`)
  },
  async rerank({ client, kind, model }) {
    const query = 'What is a weir?'
    const documents = ['A weir is a barrier across a river.', 'Bread is baked.']
    const answer = await (kind === 'tei'
      ? client.post('//rerank', { query, texts: documents, raw_scores: true })
      : client.post('/rerank', { model, query, documents }))
    const json = answer.json as Json
    const results = kind === 'tei' ? json : (json?.results ?? json?.data)
    if (!Array.isArray(results) || results.length === 0) return refused(answer)
    const scores = results.map((it) => Number(it.relevance_score ?? it.score))
    return yes(`scores ${scores.map((score) => score.toFixed(3)).join(' and ')}`)
  },
}

/** The kinds of servers that offer chats; the others only embed, rank, or process images or audio. */
const withoutChat: ReadonlySet<EngineKind> = new Set<EngineKind>([
  'tei',
  'infinity',
  'cohere',
  'jina',
  'sdcpp',
  'speaches',
  'whispercpp',
])
const withoutVectors: ReadonlySet<EngineKind> = new Set<EngineKind>(['sdcpp', 'speaches', 'whispercpp'])
const aboutVectors: ReadonlySet<QuestionName> = new Set<QuestionName>(['embeddings', 'rerank'])

export function questionsFor(kind: EngineKind): readonly QuestionName[] {
  return (Object.keys(questions) as QuestionName[]).filter((name) =>
    aboutVectors.has(name) ? !withoutVectors.has(kind) : !withoutChat.has(kind),
  )
}

/** A model that writes a call as text was trained for tools: then the server does not read it. */
function callMissing(content: unknown): string {
  return String(content).includes('get_weather')
    ? 'the call is in the text of the answer: the server does not read it'
    : 'accepted, but the model did not call the tool'
}

/** A model that goes on calling is cut off. */
const endsCall = (choice: Json): boolean => ['tool_calls', 'length'].includes(choice?.finish_reason)

const reasonText = (choice: Json): string => `finish_reason ${JSON.stringify(choice?.finish_reason ?? null)}`

const hasUsage = (json: unknown): boolean => typeof field(field(json, 'usage'), 'prompt_tokens') === 'number'

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined
}

function choicesIn(json: unknown): readonly Json[] {
  const choices = field(json, 'choices')
  return Array.isArray(choices) ? choices : []
}

function choicesOf({ json }: ProbeAnswer): readonly Json[] | undefined {
  const choices = choicesIn(json)
  return choices.length > 0 ? choices : undefined
}

function isCity(content: unknown): boolean {
  try {
    return Object.keys(JSON.parse(String(content)) as object).join() === 'city'
  } catch {
    return false
  }
}

function usageText(usage: unknown): string {
  const [input, output] = ['prompt_tokens', 'completion_tokens'].map((name) => field(usage, name))
  if (typeof input !== 'number') return 'no usage'
  return typeof output === 'number' ? `usage ${input} + ${output} tokens` : `usage ${counted(input, 'token')}`
}

function refused({ status, text }: ProbeAnswer): QuestionAnswer {
  return no(refusalText(status, text))
}

function refusalText(status: number, text: string): string {
  return `status ${status}: ${text.replaceAll(/\s+/g, ' ').slice(0, 120)}`
}
