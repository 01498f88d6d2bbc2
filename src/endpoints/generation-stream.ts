import { eventSplitter } from '../core/event-stream.ts'
import type { AnswerHead, StreamRelay } from '../core/job.ts'
import type { GenerationDialect } from '../dialects/dialect.ts'
import { readUsage, sumOfChoices, toWireUsage, type ReportedUsage } from './generation-usage.ts'
import { readChunk } from './stream-chunk.ts'

export interface StreamOptions {
  readonly includeUsage: boolean
  /** How many choices the caller asked for, over all prompts. */
  readonly choices: number
  /** 1 by default. */
  readonly prompts?: number
  readonly cachedTokens?: GenerationDialect['cachedTokens'] | undefined
}

/** Where the streams of chat and text completion differ. */
interface StreamFormat<Choice extends Indexed> {
  readonly idPrefix: string
  readonly object: string
  /** Whether a choice has only text, so that it can be forwarded unchanged. */
  isPlain(choice: Choice): boolean
  /** Rewrites any other choice in our format. `write` puts one choice into an event. */
  rewrite(choice: Choice, write: (choice: object) => string): RewrittenChoice
}

export interface RewrittenChoice {
  readonly text: string
  readonly hasContent: boolean
  /** The index of the choice, if this gave it its finish_reason. */
  readonly finished: number | undefined
}

interface Indexed {
  index?: number
}

const CHOICES_NAME = '"choices"'
const CHOICES_FIELD = '"choices":['

/**
 * Turns an engine's stream into ours. Each event is parsed once, to see tokens, the end and the usage. The
 * choices of a plain event are forwarded unchanged, with our id and model around them; other events are
 * rewritten.
 *
 * Text is latin1 in and out: see event-stream.ts.
 */
export function generationStream<Choice extends Indexed>(
  head: AnswerHead,
  options: StreamOptions,
  format: StreamFormat<Choice>,
): StreamRelay {
  const split = eventSplitter()
  const headText = `data: {"id":"${format.idPrefix}${head.id}","object":"${format.object}","created":${head.created},"model":${JSON.stringify(head.model)},`
  const tailText = options.includeUsage ? ',"usage":null}\n\n' : '}\n\n'
  const finished = new Set<number>()
  /** The count for the whole request; until it arrives, the latest count of each choice. */
  let total: ReportedUsage | undefined
  const byChoice = new Map<number, ReportedUsage>()
  let deltas = 0
  let deltasReported = 0
  let done = false
  let broken = false
  let escaped = false

  function relayEvent(data: string): string {
    if (done || broken) return ''
    if (data === '[DONE]') {
      done = true
      return ''
    }
    // An escape such as \u00e9 is a whole character, not one byte of it. An event with escapes is decoded as UTF-8.
    escaped = data.includes('\\u')
    const chunk = readChunk<Choice>(escaped ? Buffer.from(data, 'latin1').toString('utf8') : data)
    if (!chunk) {
      broken = true
      return ''
    }
    const choices = chunk.choices ?? []
    const text = relayChoices(data, choices)
    const usage = readUsage(chunk['usage'], options.cachedTokens?.(chunk))
    if (usage) {
      takeCount(usage, choices)
      deltasReported = deltas
    }
    return text
  }

  /** While vLLM and SGLang stream, the usage in a chunk covers only the choice in that chunk and its prompt. */
  function takeCount(usage: ReportedUsage, [only]: readonly Choice[]): void {
    if (only === undefined || options.choices === 1) total = usage
    else byChoice.set(only.index ?? 0, usage)
  }

  function reported(): ReportedUsage | undefined {
    if (total || byChoice.size === 0) return total
    return sumOfChoices(byChoice, options.choices / (options.prompts ?? 1))
  }

  function relayChoices(data: string, choices: readonly Choice[]): string {
    const [only] = choices
    if (only === undefined) return ''
    if (choices.length > 1 || !format.isPlain(only)) return choices.map(rewriteChoice).join('')
    deltas++
    return forward(data, choices)
  }

  function forward(data: string, choices: readonly Choice[]): string {
    // A quote inside a JSON string is escaped, so this can only be a field. If there are several, it may be another one.
    const start = data.indexOf(CHOICES_NAME)
    const isOnly = data.startsWith(CHOICES_FIELD, start) && data.indexOf(CHOICES_NAME, start + 1) < 0
    if (!isOnly) return writeChoices(choices)
    return headText + data.slice(start, endOfArray(data, start + CHOICES_FIELD.length - 1)) + tailText
  }

  function writeChoices(choices: readonly unknown[]): string {
    const text = JSON.stringify(choices)
    return `${headText}"choices":${escaped ? Buffer.from(text, 'utf8').toString('latin1') : text}${tailText}`
  }

  function rewriteChoice(choice: Choice): string {
    const { text, hasContent, finished: index } = format.rewrite(choice, (it) => writeChoices([it]))
    if (hasContent) deltas++
    if (index !== undefined) finished.add(index)
    return text
  }

  return {
    push: (chunk) => split(chunk).map(relayEvent).join(''),
    isDone: () => done,
    isBroken: () => broken,
    isComplete: () => !broken && finished.size >= options.choices,
    reportedUsage: () => reported()?.usage,
    deltaCount: () => deltas,
    deltasSinceReport: () => deltas - deltasReported,
    closing(usage) {
      if (!options.includeUsage) return 'data: [DONE]\n\n'
      const wire = toWireUsage(usage, reported()?.reasoningTokens ?? 0)
      return `${headText}"choices":[],"usage":${JSON.stringify(wire)}}\n\ndata: [DONE]\n\n`
    },
  }
}

/** Offset just past the bracket that closes the one at `open`. The text must be valid JSON. */
function endOfArray(text: string, open: number): number {
  let depth = 0
  for (let index = open; index < text.length; index++) {
    switch (text.charCodeAt(index)) {
      case 0x22: // "
        for (index++; index < text.length && text.charCodeAt(index) !== 0x22; index++)
          if (text.charCodeAt(index) === 0x5c /* \\ */) index++
        break
      case 0x5b: // [
        depth++
        break
      case 0x5d: // ]
        if (--depth === 0) return index + 1
        break
      default:
    }
  }
  return text.length
}
