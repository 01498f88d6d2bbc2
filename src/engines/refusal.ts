import { ApiError } from '../shared/errors.ts'
import { cleanRefusal } from './refusal-text.ts'

/** What an engine's error status means for the caller, and for the other addresses of the engine. */
export interface EngineRefusal {
  readonly error: ApiError
  /**
   * Whether another address might succeed. A mistake of the caller fails everywhere, and after a timeout the request
   * would take as long elsewhere.
   */
  readonly isWorthAnother: boolean
}

/** By then, even a long message has named the problem. */
const MAX_READ = 4000

/** With a status that blames the request, a hint is enough. */
const ABOUT_LENGTH = /context (length|size|window)|maximum.{0,20}(tokens|length)/i

/** How servers report that a text is too long, with any status. */
const TOO_LONG: readonly RegExp[] = [
  // OpenAI, vLLM, SGLang, llama-cpp-python, LiteLLM; also Ollama, for embeddings.
  /maximum context length/i,
  /ContextWindowExceeded/i,
  // llama.cpp: first the message for a text that is processed in one batch, then for the others.
  /too large to process/i,
  /larger than the max(imum)? context/i,
  // llama.cpp, llama-cpp-python, Ollama.
  /exceeds? (the )?(available |model's |maximum )*context/i,
  // vLLM and SGLang.
  /longer than the (model's context|maximum model|maximum context) length/i,
  /context length is only \d/i,
  /too long to fit into the model/i,
  /exceeds the maximum allowed length/i,
  // NIM and TEI.
  /exceeds (the )?maximum allowed (token|input)/i,
  /must have less than \d+ tokens/i,
]

/** The names of that error, in `type` or `code`. */
const TOO_LONG_NAMES = new Set(['exceed_context_size_error', 'context_length_exceeded', 'ContextWindowExceededError'])

/** The engine does not know its model, or has none that works. The operator has to fix that. */
const NO_MODEL = /\binvalid model\b|ModelNotDeployed|no (healthy )?deployments? available/i
/** The same, where a model is named before it. */
const NOT_THERE = /\b(not found|does not exist)/gi
/** How far before these words the model is named. */
const NAMED_WITHIN = 200

/** How servers word a mistake of the caller that they answer with 500. */
const INVALID: readonly RegExp[] = [
  // nlohmann's, which llama.cpp uses.
  /json\.exception/i,
  /param requires/i,
  /only one completion choice/i,
  /\b(is|are) not supported\b/i,
  /\bdoes not support\b/i,
  /unsupported (param|parameter|value|content|type)/i,
  /invalid (request|parameter|type|json|grammar|schema|regex|image|message|role)/i,
  /(failed to|cannot|could not|error) pars(e|ing) (the )?(grammar|json|schema|regex|messages?|tools?|image)/i,
  /failed to load image/i,
  /validation error/i,
  /BadRequestError|UnsupportedParamsError|ValidationError/i,
]

const INVALID_NAMES = new Set(['invalid_request_error', 'BadRequestError', 'ValidationError', 'Validation'])

/** Words that never occur because of a caller's mistake. */
const BROKEN = /\bcuda\b|out of memory|connection|time(d )?[ -]?out|unavailable|not running|no longer running/i

/**
 * Turns an engine's error status into an error for the caller. A mistake of the caller keeps the engine's
 * message, as far as it is about the request. An engine that refuses Weir itself (401, 403, 404) is the operator's
 * problem, so its message stays inside.
 */
export function refusalFrom(status: number, body: string, inputName?: string): EngineRefusal {
  const explanation = readRefusal(body)
  switch (kindOf(status, explanation)) {
    case 'too long':
      return callersMistake(
        new ApiError(
          'context_length_exceeded',
          joined("The request exceeds the model's maximum context length", explanation.text),
          inputName === undefined ? {} : { param: inputName },
        ),
      )
    case 'invalid':
      return callersMistake(
        new ApiError(
          'invalid_value',
          explanation.text || 'The engine refused the request as invalid.',
          explanation.param === undefined ? {} : { param: explanation.param },
        ),
      )
    case 'too large':
      return callersMistake(
        new ApiError('request_too_large', explanation.text || 'The request is too large for the engine.'),
      )
    case 'overloaded':
      return enginesProblem(
        new ApiError('model_overloaded', 'The engine is overloaded. Try again in a few seconds.', { param: 'model' }),
        true,
      )
    case 'timeout':
      return enginesProblem(new ApiError('upstream_timeout', 'The engine did not answer in time.'), false)
    case 'failed':
      return enginesProblem(
        // A key that the engine refuses stays refused until the operator corrects it.
        new ApiError('upstream_error', `The engine failed with status ${status}.`, {
          waitingHelps: ![401, 403].includes(status),
        }),
        status >= 500 || [400, 401, 403, 404, 422].includes(status),
      )
  }
}

type RefusalKind = 'too long' | 'invalid' | 'too large' | 'overloaded' | 'timeout' | 'failed'

function kindOf(status: number, { message, names }: EngineExplanation): RefusalKind {
  const isTooLong = matchesAny(TOO_LONG, message) || names.some((name) => TOO_LONG_NAMES.has(name))
  switch (status) {
    case 400:
    case 422:
      if (isTooLong || ABOUT_LENGTH.test(message)) return 'too long'
      return reportsNoModel(message) ? 'failed' : 'invalid'
    case 413:
      return isTooLong ? 'too long' : 'too large'
    case 429:
      return 'overloaded'
    case 408:
    case 504:
      return 'timeout'
    case 500: {
      if (BROKEN.test(message)) return 'failed'
      if (isTooLong) return 'too long'
      const isInvalid = matchesAny(INVALID, message) || names.some((name) => INVALID_NAMES.has(name))
      return isInvalid && !reportsNoModel(message) ? 'invalid' : 'failed'
    }
    default:
      return 'failed'
  }
}

function matchesAny(patterns: readonly RegExp[], message: string): boolean {
  return patterns.some((pattern) => pattern.test(message))
}

function reportsNoModel(message: string): boolean {
  if (NO_MODEL.test(message)) return true
  return [...message.matchAll(NOT_THERE)].some(({ index }) =>
    /\bmodel\b/i.test(message.slice(Math.max(0, index - NAMED_WITHIN), index)),
  )
}

function callersMistake(error: ApiError): EngineRefusal {
  return { error, isWorthAnother: false }
}

function enginesProblem(error: ApiError, isWorthAnother: boolean): EngineRefusal {
  return { error, isWorthAnother }
}

function joined(sentence: string, detail: string): string {
  return detail === '' ? `${sentence}.` : `${sentence}: ${detail}`
}

/**
 * The mistake of the caller that an event of a stream reports, after status 200, as some versions of SGLang and vLLM do.
 * `event` is JSON; undefined if it reports something else.
 */
export function refusalInStream(event: string, inputName?: string): ApiError | undefined {
  const { code } = asRecord(asRecord(JSON.parse(event))['error'])
  const status = typeof code === 'number' && code >= 400 ? code : 500
  const { error, isWorthAnother } = refusalFrom(status, event, inputName)
  return isWorthAnother || error.status >= 500 ? undefined : error
}

/** An engine's explanation of its refusal. */
interface EngineExplanation {
  /** Verbatim. */
  readonly message: string
  /** What a caller may read of it. */
  readonly text: string
  /** The type and the code of the error. */
  readonly names: readonly string[]
  readonly param?: string
}

/** vLLM and OpenAI nest the message in `error`, FastAPI uses `detail`, and others `message` or plain text. */
function readRefusal(body: string): EngineExplanation {
  let parsed: unknown
  try {
    parsed = JSON.parse(body)
  } catch {
    // It may be anything, such as the page of a proxy, so it is not shown to the caller.
    return { message: body.slice(0, MAX_READ), text: '', names: [] }
  }
  const outer = asRecord(parsed)
  if (Array.isArray(outer['detail'])) return readValidation(asRecord(outer['detail'][0]))
  const inner = typeof outer['error'] === 'object' ? asRecord(outer['error']) : outer
  const stated = [inner['message'], outer['error'], outer['detail']].find((it) => typeof it === 'string')
  const names = [inner['type'], inner['code'], inner['error_type']].filter((it) => typeof it === 'string')
  const message = (stated ?? '').slice(0, MAX_READ)
  const param = typeof inner['param'] === 'string' ? inner['param'] : fieldIn(message)
  return { message, text: cleanRefusal(message), names, ...(param === undefined ? {} : { param }) }
}

/** FastAPI's first problem: `{loc: ['body', 'temperature'], msg: 'Input should be a valid number'}`. */
function readValidation({ loc, msg }: Record<string, unknown>): EngineExplanation {
  const message = typeof msg === 'string' ? msg.slice(0, MAX_READ) : ''
  const param = fieldAt(Array.isArray(loc) ? loc : [])
  return { message, text: cleanRefusal(message), names: [], ...(param === undefined ? {} : { param }) }
}

/**
 * The request field that a location refers to. infinity puts the kind of input before it; indexes and types follow it.
 */
function fieldAt(place: readonly unknown[]): string | undefined {
  return place.filter((it) => typeof it === 'string').find((it) => it !== 'body' && it !== 'text')
}

/** The same, in words: llama-cpp-python answers with "1 validation error: {'loc': ('body', 'temperature'), …". */
function fieldIn(message: string): string | undefined {
  const place = /'loc': \(([^()]*)\)/.exec(message)?.[1] ?? ''
  return fieldAt([...place.matchAll(/'(\w+)'/g)].map(([, name]) => name))
}

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}
