import { stopText, type StopText } from '../runtime/stop-text.ts'
import { parseToolCall, type ToolCall } from './tool-calls.ts'

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

/** Splits what a model writes into text, reasoning (`<think>`) and tool calls (`<tool_call>`) as it arrives. */
export function answerParts(options: {
  readonly thinks: boolean
  readonly startsThinking: boolean
  readonly tools: boolean
}): AnswerParts {
  const opened: Readonly<Partial<Record<string, Section>>> = {
    ...(options.thinks ? { '<think>': 'reasoning' } : {}),
    ...(options.tools ? { '<tool_call>': 'tool_call' } : {}),
  }
  const watch = (section: Section): StopText =>
    stopText(section === 'text' ? Object.keys(opened) : [closingTags[section]])
  let section: Section = options.startsThinking ? 'reasoning' : 'text'
  let tags = watch(section)
  let callText = ''

  function partsOf(text: string): ModelAnswerPart[] {
    if (text === '') return []
    if (section !== 'tool_call') return [{ kind: section, text }]
    callText += text
    return []
  }

  function closeCall(): ModelAnswerPart[] {
    if (section !== 'tool_call') return []
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
        parts.push(...closeCall())
        section = section === 'text' ? (opened[tag] ?? 'text') : 'text'
        tags = watch(section)
      }
      return parts
    },
    flush: () => [...partsOf(tags.flush()), ...closeCall()],
  }
}
