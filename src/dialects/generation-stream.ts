import type { AnswerHead, StreamRelay } from '../core/job.ts'
import type { GenerationDialect } from './dialect.ts'
import { eventSplitter } from './event-stream.ts'
import { readUsage, sumOfChoices, toWireUsage, type ReportedUsage } from './usage.ts'

/** What a caller asked of a stream. */
export interface StreamOptions {
  readonly includeUsage: boolean
  /** How many the caller asked for, of all prompts together. */
  readonly choices: number
  /** One, unless it says otherwise. */
  readonly prompts?: number
  readonly cachedTokens?: GenerationDialect['cachedTokens'] | undefined
}

/** What chat and text completion word differently. */
export interface StreamWording<Choice extends Indexed> {
  readonly idPrefix: string
  readonly object: string
  /** A choice with text and nothing else to see may go out as it came. */
  isPlain(choice: Choice): boolean
  /** Anything else, in our words: `write` puts one choice into an event. */
  rewrite(choice: Choice, write: (choice: object) => string): Rewritten
}

export interface Rewritten {
  readonly text: string
  readonly hasContent: boolean
  /** The choice that has its finish_reason with this. */
  readonly finished: number | undefined
}

interface Indexed {
  index?: number
}

interface Chunk<Choice> {
  [name: string]: unknown
  choices?: Choice[]
}

const CHOICES_FIELD = '"choices":['

/**
 * Turns an engine's stream into ours. Each event is parsed once, to see tokens, the end and the usage. The
 * choices of the usual event then go out as they came, with our id and model around them; what an engine
 * words differently is written anew.
 *
 * Text is latin1 in and out: see event-stream.ts.
 */
export function generationStream<Choice extends Indexed>(
  head: AnswerHead,
  options: StreamOptions,
  wording: StreamWording<Choice>,
): StreamRelay {
  const split = eventSplitter()
  const headText = `data: {"id":"${wording.idPrefix}${head.id}","object":"${wording.object}","created":${head.created},"model":${JSON.stringify(head.model)},`
  const tailText = options.includeUsage ? ',"usage":null}\n\n' : '}\n\n'
  const finished = new Set<number>()
  /** Of everything; and where there is none yet, of each choice alone. */
  let whole: ReportedUsage | undefined
  const ofChoices = new Map<number, ReportedUsage>()
  let deltas = 0
  let deltasReported = 0
  let done = false
  let broken = false
  let escaped = false

  function event(data: string): string {
    if (done || broken) return ''
    if (data === '[DONE]') {
      done = true
      return ''
    }
    // An escape such as \u00e9 is a character and not a byte of one: where there is any, the event is read as UTF-8.
    escaped = data.includes('\\u')
    let chunk: Chunk<Choice>
    try {
      chunk = JSON.parse(escaped ? Buffer.from(data, 'latin1').toString('utf8') : data) as Chunk<Choice>
    } catch {
      broken = true
      return ''
    }
    if (chunk['error'] !== undefined && chunk['error'] !== null) {
      broken = true
      return ''
    }
    const text = relayChoices(data, chunk.choices ?? [])
    const usage = readUsage(chunk['usage'], options.cachedTokens?.(chunk))
    if (usage) {
      takeCount(usage, chunk.choices ?? [])
      deltasReported = deltas
    }
    return text
  }

  /** What vLLM and SGLang count while they stream is the choice in that chunk and its prompt, and no other. */
  function takeCount(usage: ReportedUsage, [only]: readonly Choice[]): void {
    if (only === undefined || options.choices === 1) whole = usage
    else ofChoices.set(only.index ?? 0, usage)
  }

  function reported(): ReportedUsage | undefined {
    if (whole || ofChoices.size === 0) return whole
    return sumOfChoices(ofChoices, options.choices / (options.prompts ?? 1))
  }

  function relayChoices(data: string, choices: readonly Choice[]): string {
    const [only] = choices
    if (only === undefined) return ''
    if (choices.length > 1 || !wording.isPlain(only)) return choices.map(writeAnew).join('')
    deltas++
    return passOn(data, choices)
  }

  function passOn(data: string, choices: readonly Choice[]): string {
    // A quote inside a JSON string is escaped, so this can only be the field.
    const start = data.indexOf(CHOICES_FIELD)
    if (start < 0) return writeChoices(choices)
    return headText + data.slice(start, endOfArray(data, start + CHOICES_FIELD.length - 1)) + tailText
  }

  function writeChoices(choices: readonly unknown[]): string {
    const text = JSON.stringify(choices)
    return `${headText}"choices":${escaped ? Buffer.from(text, 'utf8').toString('latin1') : text}${tailText}`
  }

  function writeAnew(choice: Choice): string {
    const { text, hasContent, finished: index } = wording.rewrite(choice, (it) => writeChoices([it]))
    if (hasContent) deltas++
    if (index !== undefined) finished.add(index)
    return text
  }

  return {
    push: (chunk) => split(chunk).map(event).join(''),
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

/** Offset just past the bracket that closes the one at `open`, in text that is known to be valid JSON. */
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
