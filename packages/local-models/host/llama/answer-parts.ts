import { stopText, type StopText } from '../runtime/stop-text.ts'
import { bareToolCall, parseToolCall, type ToolCall } from './tool-calls.ts'

export type ModelAnswerPart =
  | { readonly kind: 'text' | 'reasoning'; readonly text: string }
  | { readonly kind: 'tool_call'; readonly call: ToolCall }

export interface AnswerParts {
  push(text: string): ModelAnswerPart[]
  /** At the end of the answer. */
  flush(): ModelAnswerPart[]
}

type Section = 'text' | 'reasoning' | 'tool_call'

const closingTags: Readonly<Record<Exclude<Section, 'text'>, string>> = {
  reasoning: '</think>',
  tool_call: '</tool_call>',
}

/** How an answer begins that is a call without its tags. */
const bareOpenings = ['{', '```', '<tools>']

/** Splits what a model writes into text, reasoning (`<think>`) and tool calls (`<tool_call>`) as it arrives. */
export function answerParts(options: {
  readonly thinks: boolean
  readonly startsThinking: boolean
  /** The names of those that may be called. */
  readonly tools: readonly string[]
}): AnswerParts {
  const opened: Readonly<Partial<Record<string, Section>>> = {
    ...(options.thinks ? { '<think>': 'reasoning' } : {}),
    ...(options.tools.length > 0 ? { '<tool_call>': 'tool_call' } : {}),
  }
  const watch = (section: Section): StopText =>
    stopText(section === 'text' ? Object.keys(opened) : [closingTags[section]])
  let section: Section = options.startsThinking ? 'reasoning' : 'text'
  let tags = watch(section)
  let callText = ''
  /** The beginning of the answer, while it may be a call without tags: small models often leave them out. */
  let held: string | undefined = options.tools.length > 0 ? '' : undefined

  function partsOf(text: string): ModelAnswerPart[] {
    if (text === '') return []
    if (section === 'reasoning') return [{ kind: section, text }]
    if (section === 'text') return textParts(text)
    callText += text
    return []
  }

  function textParts(text: string): ModelAnswerPart[] {
    if (held === undefined) return [{ kind: 'text', text }]
    held += text
    const start = held.trimStart()
    if (bareOpenings.some((opening) => start.startsWith(opening) || opening.startsWith(start))) return []
    return releaseHeld()
  }

  function releaseHeld(): ModelAnswerPart[] {
    // Reasoning may come before the answer.
    if (held === undefined || held === '') return []
    const text = held
    held = undefined
    const call = bareToolCall(text, options.tools)
    return [call ? { kind: 'tool_call', call } : { kind: 'text', text }]
  }

  function closeSection(): ModelAnswerPart[] {
    if (section === 'text') return releaseHeld()
    if (section === 'reasoning') return []
    const text = callText
    callText = ''
    const call = parseToolCall(text)
    // If it is not a call after all, the caller sees what the model wrote.
    return [call ? { kind: 'tool_call', call } : { kind: 'text', text }]
  }

  return {
    push(text) {
      const parts: ModelAnswerPart[] = []
      for (let rest = text; rest !== '';) {
        parts.push(...partsOf(tags.push(rest)))
        const tag = tags.found()
        if (tag === undefined) break
        rest = tags.remainder()
        parts.push(...closeSection())
        section = section === 'text' ? (opened[tag] ?? 'text') : 'text'
        tags = watch(section)
      }
      return parts
    },
    flush: () => [...partsOf(tags.flush()), ...closeSection()],
  }
}
