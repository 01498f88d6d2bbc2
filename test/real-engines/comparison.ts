import assert from 'node:assert/strict'
import type { LedgerRow } from '../../src/ledger/rows.ts'
import { roomyLimits } from '../support/chat-stage.ts'
import { eventually } from '../support/waiting.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'

/** Weir in front of a real server. Every call can be made through Weir, or directly. */
export interface ComparisonStage {
  readonly weir: TestWeir
  readonly origin: string
  through(endpoint: string, body: object, signal?: AbortSignal): Promise<Response>
  direct(path: string, body: object, signal?: AbortSignal): Promise<Response>
  /** Makes the same call both ways, one after the other, and finds the row that the first one left. */
  both(endpoint: string, body: object): Promise<Comparison>
  rowOf(response: Response): Promise<LedgerRow>
  stop(): Promise<void>
}

export interface Comparison {
  readonly through: Answer
  readonly direct: Answer
  readonly row: LedgerRow
}

export interface StageOptions {
  readonly kind: string
  readonly origin: string
  /** The path of the server's API. */
  readonly base: string
  /** The name that the server knows the model by. */
  readonly model: string
  readonly categories: readonly string[]
  readonly apiKey?: string
}

const MODEL = 'test/real'
const parameters = [
  'temperature',
  'stop',
  'seed',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'response_format',
  'n',
  'logprobs',
  'top_logprobs',
]

export async function comparisonStage(options: StageOptions): Promise<ComparisonStage> {
  const { kind, origin, base, model, categories, apiKey } = options
  const weir = await startWeir(
    {
      rate_limit: { requests_per_minute: 100_000 },
      models: [
        modelEntry([], {
          id: MODEL,
          aliases: [],
          categories,
          // Larger than the server's, so that the server refuses what is too long.
          context_length: 100_000,
          ...(categories.includes('reranker') ? { rerank_schema: 'documents' } : {}),
          supported_parameters: parameters,
          serverless: {
            engine: {
              kind,
              urls: [origin + base],
              model,
              ...(apiKey === undefined ? {} : { api_key_env: 'REAL_ENGINE_KEY' }),
            },
            limits: { ...roomyLimits, token_budget: 1_000_000, max_wait_ms: 300_000 },
          },
        }),
      ],
    },
    apiKey === undefined ? {} : { REAL_ENGINE_KEY: apiKey },
  )

  const post = (body: object, signal: AbortSignal | undefined, key?: string): RequestInit => ({
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
    },
    body: JSON.stringify(body),
    ...(signal ? { signal } : {}),
  })
  const through: ComparisonStage['through'] = (endpoint, body, signal) =>
    weir.call(endpoint, post({ ...body, model: MODEL }, signal))
  const direct: ComparisonStage['direct'] = (path, body, signal) =>
    fetch(origin + base + path, post({ ...body, model }, signal, apiKey))
  const rowOf: ComparisonStage['rowOf'] = async (response) => {
    const requestId = response.headers.get('x-request-id')
    let row: LedgerRow | undefined
    await eventually(
      'the row is written',
      async () => {
        row = (await weir.ledger()).find((it) => it.requestId === requestId)
        return row !== undefined
      },
      30_000,
    )
    assert.ok(row)
    return row
  }
  return {
    weir,
    origin,
    through,
    direct,
    rowOf,
    async both(endpoint, body) {
      const viaWeir = await through(endpoint, body)
      const answer = await readAnswer(viaWeir)
      const other = await undisturbed(() => direct(endpoint, body))
      assert.equal(answer.status, 200, answer.raw)
      assert.equal(other.status, 200, other.raw)
      return { through: answer, direct: other, row: await rowOf(viaWeir) }
    },
    stop: () => weir.stop(),
  }
}

const ATTEMPTS = 5

/**
 * llama-cpp-python drops a stream when another request comes. Weir does not probe it during its own calls, but it does not
 * know of the direct ones.
 */
async function undisturbed(call: () => Promise<Response>): Promise<Answer> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await readAnswer(await call())
    } catch (error) {
      if (attempt === ATTEMPTS) throw error
    }
  }
}

/** What a caller can tell from an answer, whole or streamed. */
export interface Answer {
  readonly status: number
  readonly raw: string
  readonly choices: readonly Choice[]
  readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number } | undefined
  readonly errorCode: string | undefined
}

interface Choice {
  text: string
  finishReason: string | null
  toolCalls: { name: string; arguments: string }[]
  /** The tokens that have log probabilities, and how many alternatives each has. */
  logprobs: { token: string; alternatives: number }[]
}

// oxlint-disable-next-line typescript/no-explicit-any -- whatever a server sends
type Json = any

export async function readAnswer(response: Response): Promise<Answer> {
  const raw = await response.text()
  const isStream = (response.headers.get('content-type') ?? '').startsWith('text/event-stream')
  const parts: Json[] = isStream ? eventsOf(raw) : [JSON.parse(raw)]
  const choices: Choice[] = []
  let usage: Answer['usage']
  let errorCode: string | undefined
  for (const part of parts) {
    usage = part.usage ?? usage
    errorCode = part.error?.code ?? errorCode
    for (const it of part.choices ?? []) {
      const choice = (choices[it.index] ??= { text: '', finishReason: null, toolCalls: [], logprobs: [] })
      addTo(choice, it)
    }
  }
  return { status: response.status, raw, choices, usage, errorCode }
}

export function eventsOf(raw: string): Json[] {
  return raw
    .split(/\r?\n\r?\n/)
    .filter((event) => event.startsWith('data: {'))
    .map((event) => JSON.parse(event.slice('data: '.length)))
}

function addTo(choice: Choice, part: Json): void {
  const message = part.message ?? part.delta ?? {}
  choice.text += part.text ?? message.content ?? ''
  choice.finishReason = part.finish_reason ?? choice.finishReason
  for (const [position, call] of (message.tool_calls ?? []).entries()) {
    const known = (choice.toolCalls[call.index ?? position] ??= { name: '', arguments: '' })
    // llama-cpp-python repeats the name in every piece; Weir does not.
    known.name ||= call.function?.name ?? ''
    known.arguments += call.function?.arguments ?? ''
  }
  for (const { token, top_logprobs } of part.logprobs?.content ?? []) {
    choice.logprobs.push({ token, alternatives: top_logprobs.length })
  }
}
