import type { AnswerHead, StreamRelay } from '../core/job.ts'
import { eventSplitter } from './event-stream.ts'
import { readUsage, toWireUsage } from './usage.ts'

interface Delta {
  role?: string
  content?: string | null
  reasoning_content?: string | null
  reasoning?: string | null
  tool_calls?: unknown[] | null
}

interface Choice {
  index?: number
  delta?: Delta | null
  logprobs?: unknown
  finish_reason?: string | null
}

interface Chunk {
  choices?: Choice[]
  usage?: unknown
  error?: unknown
}

const CHOICES_FIELD = '"choices":['

/**
 * Turns an engine's chat stream into ours. Each event is parsed once, to see tokens, the end and the
 * usage. The choices of the usual event then go out as they came, with our id and model around them; what
 * an engine words differently is written anew.
 *
 * Text is latin1 in and out: see event-stream.ts.
 */
export function chatStream(head: AnswerHead, options: { includeUsage: boolean; choices: number }): StreamRelay {
  const split = eventSplitter()
  const headText = `data: {"id":"chatcmpl-${head.id}","object":"chat.completion.chunk","created":${head.created},"model":${JSON.stringify(head.model)},`
  const tailText = options.includeUsage ? ',"usage":null}\n\n' : '}\n\n'
  const opened = new Set<number>()
  const finished = new Set<number>()
  let reported: ReturnType<typeof readUsage>
  let deltas = 0
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
    let chunk: Chunk
    try {
      chunk = JSON.parse(escaped ? Buffer.from(data, 'latin1').toString('utf8') : data) as Chunk
    } catch {
      broken = true
      return ''
    }
    if (chunk.error !== undefined && chunk.error !== null) {
      broken = true
      return ''
    }
    reported = readUsage(chunk.usage) ?? reported
    const choices = chunk.choices ?? []
    if (choices.length === 0) return ''
    const plain = choices.length === 1 && isPlain(choices[0])
    if (plain) deltas++
    return plain ? passOn(data, choices) : choices.map(writeAnew).join('')
  }

  /** A delta with text and nothing else to see: by far the most of them. */
  function isPlain(choice: Choice | undefined): boolean {
    const delta = choice?.delta
    if (!delta || choice.finish_reason !== null || !opened.has(choice.index ?? 0)) return false
    if (delta.role !== undefined || delta.reasoning !== undefined || delta.tool_calls?.length) return false
    return typeof delta.content === 'string' && delta.content !== ''
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

  function writeDelta(index: number, delta: object, logprobs: unknown, finishReason: string | null): string {
    return writeChoices([{ index, delta, logprobs: logprobs ?? null, finish_reason: finishReason }])
  }

  /** Role first, then content, then an empty delta with the reason: whatever the engine put together. */
  function writeAnew(choice: Choice): string {
    const index = choice.index ?? 0
    const delta = choice.delta ?? {}
    let text = ''
    if (!opened.has(index)) {
      opened.add(index)
      text += writeDelta(index, { role: 'assistant', content: '' }, null, null)
    }
    const news = contentOf(delta)
    if (news) {
      deltas++
      text += writeDelta(index, news, choice.logprobs, null)
    }
    if (choice.finish_reason && !finished.has(index)) {
      finished.add(index)
      text += writeDelta(index, {}, news ? null : choice.logprobs, choice.finish_reason)
    }
    return text
  }

  return {
    push: (chunk) => split(chunk).map(event).join(''),
    isDone: () => done,
    isBroken: () => broken,
    isComplete: () => !broken && finished.size >= options.choices,
    reportedUsage: () => reported?.usage,
    deltaCount: () => deltas,
    closing(usage) {
      if (!options.includeUsage) return 'data: [DONE]\n\n'
      const wire = toWireUsage(usage, reported?.reasoningTokens ?? 0)
      return `${headText}"choices":[],"usage":${JSON.stringify(wire)}}\n\ndata: [DONE]\n\n`
    },
  }
}

/** The part of a delta that says something, in our words; undefined where nothing does. */
function contentOf(delta: Delta): object | undefined {
  const reasoning = delta.reasoning_content ?? delta.reasoning
  const news = {
    ...(typeof delta.content === 'string' && delta.content !== '' ? { content: delta.content } : {}),
    ...(typeof reasoning === 'string' && reasoning !== '' ? { reasoning_content: reasoning } : {}),
    ...(Array.isArray(delta.tool_calls) && delta.tool_calls.length > 0
      ? { tool_calls: delta.tool_calls.map((call, index) => ({ index, ...(call as object) })) }
      : {}),
  }
  return Object.keys(news).length > 0 ? news : undefined
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
