import { eventSplitter } from '../../shared/event-stream.ts'
import type { ApiError } from '../../shared/errors.ts'
import type { AnswerHead, StreamRelay } from '../../engines/job.ts'
import type { Usage } from '../../billing/rating/rating.ts'
import { finishReason, endOfArray, fromBytes, toBytes, readChunk, type StreamChunk } from './engine-output.ts'
import { streamCount, readUsage, toWireUsage, type ReportedUsage, type WireUsage } from './generation-usage.ts'
import { choiceMeter, type ChoiceMeter, type TokenBudget } from './generation-limit.ts'
import type { GenerationOptions } from './generation-options.ts'

/** Where the streams of chat and text completion differ. */
interface StreamFormat<Choice extends AnyChoice> {
  readonly idPrefix: string
  readonly object: string
  /** Whether this event has to be decoded as characters, not only bytes. */
  countsCharacters?(data: string): boolean
  /** The choice without the fields that an engine repeats in every event. */
  withoutRepetition?(choice: Choice): Choice
  /** Whether a choice has only text, so that it can be forwarded unchanged. */
  isPlain(choice: Choice): boolean
  /** The output in a choice; undefined if it has none. */
  outputOf(choice: Choice): string | undefined
  /** The choice with only the part of its output that `keep` returns, and `length` as its finish_reason. */
  cut(choice: Choice, keep: (text: string) => string): Choice
  /** Rewrites any other choice in our format. `write` puts one choice into an event. */
  rewrite(choice: Choice, write: (choice: object) => string): RewrittenChoice
  /** A choice that ends with this finish_reason; or with a more specific one, if its output implies that. */
  ending(index: number, reason: 'stop' | 'length'): Choice
  /** The end of the stream in another API's format. Set for all of these or none. */
  readonly ends?: StreamEnds | undefined
}

/** How another API ends a stream, in bytes as latin1. */
interface StreamEnds {
  closing(usage: WireUsage): string
  failure(error: ApiError): string
  idle(): string
}

export interface RewrittenChoice {
  readonly text: string
  /** The index of the choice, if this gave it its finish_reason. */
  readonly finished: number | undefined
  /** The event cannot be relayed. */
  readonly isBroken?: boolean
}

/** The stream of one call. */
export interface CallStream extends Omit<StreamRelay, 'next' | 'closing'> {
  /** The engine's latest count, if there is one. */
  reported(): ReportedUsage | undefined
  /** The end of a complete answer. `reported` is the count of all calls, if there are others. */
  closing(usage: Usage, reported?: ReportedUsage): string
}

interface AnyChoice {
  index?: number
  finish_reason?: string | null
}

const CHOICES_NAME = '"choices"'
const CHOICES_FIELD = '"choices":['

/**
 * Converts an engine's stream to ours. Each event is parsed once, to find tokens, the end and the usage. The choices of
 * a plain event are forwarded unchanged, with our id and model around them; other events are rewritten. A choice that
 * exceeds its limit ends there.
 *
 * Text is latin1 in and out: see event-stream.ts.
 */
export function generationStream<Choice extends AnyChoice>(
  head: AnswerHead,
  { limit, includeUsage, prompts = 1, firstIndex = 0, usageOf }: GenerationOptions,
  format: StreamFormat<Choice>,
): CallStream {
  const split = eventSplitter(readEvent)
  const tier = head.tier === undefined ? '' : `"service_tier":"${head.tier}",`
  const headText = `data: {"id":"${format.idPrefix}${head.id}","object":"${format.object}","created":${head.created},"model":${JSON.stringify(head.model)},${tier}`
  const tailText = includeUsage ? ',"usage":null}\n\n' : '}\n\n'
  const meters = new Map<number, ChoiceMeter>()
  const cut = new Set<number>()
  const finished = new Set<number>()
  const count = streamCount(limit, prompts, () => cut.size === 0)
  let relayed = ''
  let deltas = 0
  let done = false
  let broken = false
  let wrongEvent: string | undefined
  let isPastLimit = false
  let isDecoded = false
  let isOnlyReasonLength = true

  function readEvent(data: string, isWhole: boolean): boolean {
    if (done || broken) return true
    if (data === '[DONE]') return endStream()
    // An escape such as \u00e9 is a whole character, not one byte of it, so an event with escapes is decoded as UTF-8.
    // So is one in which the length of a text in characters matters: one that may repeat the prompt, for example.
    isDecoded =
      limit.echoedCharacters !== undefined || data.includes('\\u') || (format.countsCharacters?.(data) ?? false)
    const chunk = readChunk<Choice>(isDecoded ? fromBytes(data) : data)
    if (chunk === 'unreadable' && !isWhole) return data.trim() === '[DONE]' && endStream()
    if (chunk === 'wrong') wrongEvent = fromBytes(data)
    if (typeof chunk === 'string') broken = true
    // An event with several lines contains line breaks, so it cannot be forwarded unchanged.
    else relayed += relayChunk(isWhole ? undefined : data, chunk)
    return true
  }

  function endStream(): true {
    done = true
    relayed += endChoices()
    return true
  }

  function relayChunk(data: string | undefined, chunk: StreamChunk<Choice>): string {
    const usage = readUsage(usageOf ? usageOf(chunk) : chunk['usage'])
    const text = relayChoices(data, chunk.choices ?? [], usage)
    // The engine does not know that a choice was cut, so it might never stop.
    if (isPastLimit && finished.size >= limit.choices) done = true
    return text
  }

  function relayChoices(
    data: string | undefined,
    choices: readonly Choice[],
    usage: ReportedUsage | undefined,
  ): string {
    const [only, ...others] = choices
    // While vLLM and SGLang stream, the usage in a chunk covers only the choice in that chunk and its prompt.
    if (only !== undefined && others.length === 0) return relayChoice(only, usage, data)
    const text = choices.map((choice) => relayChoice(choice)).join('')
    if (usage) count.takeAlone(usage, deltas)
    return text
  }

  /** `usage` and `data` are set for an event that has only this choice, in one line. */
  function relayChoice(given: Choice, usage?: ReportedUsage, data?: string): string {
    const index = given.index ?? 0
    if (given.finish_reason) {
      given.finish_reason = finishReason(given.finish_reason) ?? null
      count.end(index)
    }
    const meter = meterOf(index)
    if (!meter || cut.has(index)) {
      // The caller did not request this choice, or this much of it.
      isPastLimit = true
      return ''
    }
    const choice = format.withoutRepetition?.(given) ?? given
    const before = meter.events()
    const budget = meter.take(format.outputOf(choice), usage?.usage.outputTokens, Boolean(choice.finish_reason))
    deltas += meter.events() - before
    // LiteLLM puts the count for the whole request next to a choice that has ended already.
    if (usage && finished.has(index)) count.takeAlone(usage, deltas)
    else if (usage && (!budget || meter.events() > before)) {
      if (usage.usage.outputTokens > limit.maxTokens) isPastLimit = true
      count.takeWithChoice(index, usage, meter.events())
    }
    if (budget) return cutChoice(index, choice, budget)
    if (data === undefined || choice !== given || !format.isPlain(choice)) return rewriteChoice(choice)
    return forward(data, choice)
  }

  /** undefined for a choice beyond the number that the caller requested, whatever the indexes are. */
  function meterOf(index: number): ChoiceMeter | undefined {
    let meter = meters.get(index)
    if (meter || meters.size >= limit.choices) return meter
    meters.set(index, (meter = choiceMeter(limit, index)))
    return meter
  }

  /**
   * The engine ended normally but gave a finish_reason only for some choices, as LiteLLM does. Every other choice with
   * output ended as well: with `length` if it has all the tokens it may have, or if that is the only reason the engine
   * gave.
   */
  function endChoices(): string {
    if (finished.size === 0) return ''
    let text = ''
    for (const [index, meter] of meters) {
      if (finished.has(index) || meter.events() === 0) continue
      text += rewriteChoice(format.ending(index, isOnlyReasonLength || meter.isFull() ? 'length' : 'stop'))
    }
    return text
  }

  function cutChoice(index: number, choice: Choice, { keep }: TokenBudget): string {
    isPastLimit = true
    cut.add(index)
    return rewriteChoice(format.cut(choice, isDecoded ? keep : (bytes) => toBytes(keep(fromBytes(bytes)))))
  }

  function forward(data: string, choice: Choice): string {
    // A quote inside a JSON string is escaped, so this can only be a field. If there are several, it may be another one.
    const start = data.indexOf(CHOICES_NAME)
    const isOnly = data.startsWith(CHOICES_FIELD, start) && data.indexOf(CHOICES_NAME, start + 1) < 0
    if (!isOnly || firstIndex > 0) return writeChoice(choice)
    const end = endOfArray(data, start + CHOICES_FIELD.length - 1)
    return headText + data.slice(start, end) + tailText
  }

  function writeChoice(choice: AnyChoice): string {
    const text = JSON.stringify([{ ...choice, index: firstIndex + (choice.index ?? 0) }])
    return `${headText}"choices":${isDecoded ? toBytes(text) : text}${tailText}`
  }

  function rewriteChoice(choice: Choice): string {
    const { text, finished: index, isBroken } = format.rewrite(choice, writeChoice)
    if (isBroken) broken = true
    if (index !== undefined) {
      finished.add(index)
      isOnlyReasonLength &&= choice.finish_reason === 'length'
    }
    return text
  }

  return {
    push(chunk) {
      relayed = ''
      split(chunk)
      return relayed
    },
    isDone: () => done,
    isBroken: () => broken,
    wrongEvent: () => wrongEvent,
    isComplete: () => !broken && finished.size >= limit.choices,
    isPastLimit: () => isPastLimit,
    reported: count.reported,
    reportedUsage: () => count.reported()?.usage,
    deltaCount: () => deltas,
    deltasSinceReport: () => count.uncovered(deltas),
    idle: format.ends && (() => format.ends?.idle() ?? ''),
    failure: (error) => format.ends?.failure(error) ?? `data: ${JSON.stringify(error.body())}\n\n`,
    closing(usage, counted = count.reported()) {
      const wire = toWireUsage(usage, counted)
      if (format.ends) return format.ends.closing(wire)
      if (!includeUsage) return 'data: [DONE]\n\n'
      return `${headText}"choices":[],"usage":${JSON.stringify(wire)}}\n\ndata: [DONE]\n\n`
    },
  }
}
