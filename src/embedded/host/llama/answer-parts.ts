import { StopText } from '../runtime/stop-text.ts'
import { parseToolCall } from './tool-calls.ts'
import type { ToolCall } from './tool-calls.ts'

export type AnswerPart = { kind: 'text' | 'reasoning'; text: string } | { kind: 'tool_call'; call: ToolCall }

type Section = 'text' | 'reasoning' | 'tool_call'

const closing: Record<Exclude<Section, 'text'>, string> = { reasoning: '</think>', tool_call: '</tool_call>' }

/** Sorts what a model writes into text, thinking (`<think>`) and calls (`<tool_call>`), as it comes. */
export class AnswerParts {
  readonly #opening: Partial<Record<string, Section>>
  #section: Section
  #watch: StopText
  #call = ''
  #pending = ''

  constructor(options: { thinks: boolean; startsThinking: boolean; tools: boolean }) {
    this.#opening = {
      ...(options.thinks ? { '<think>': 'reasoning' as const } : {}),
      ...(options.tools ? { '<tool_call>': 'tool_call' as const } : {}),
    }
    this.#section = options.startsThinking ? 'reasoning' : 'text'
    this.#watch = this.#watcher()
  }

  push(text: string): AnswerPart[] {
    const parts: AnswerPart[] = []
    this.#pending += text
    while (this.#pending !== '') {
      const fed = this.#pending
      this.#pending = ''
      this.#emit(this.#watch.push(fed), parts)
      if (this.#watch.stopped) this.#turn(parts)
    }
    return parts
  }

  flush(): AnswerPart[] {
    const parts: AnswerPart[] = []
    this.#emit(this.#watch.flush(), parts)
    if (this.#section === 'tool_call') this.#closeCall(parts)
    return parts
  }

  #watcher(): StopText {
    return new StopText(this.#section === 'text' ? Object.keys(this.#opening) : [closing[this.#section]])
  }

  #emit(text: string, parts: AnswerPart[]): void {
    if (text === '') return
    if (this.#section === 'tool_call') this.#call += text
    else parts.push({ kind: this.#section, text })
  }

  /** A mark was met: leave the section it ends, or enter the one it opens, and go on behind it. */
  #turn(parts: AnswerPart[]): void {
    const after = this.#watch.remainder()
    const mark = this.#watch.found ?? ''
    if (this.#section === 'tool_call') this.#closeCall(parts)
    this.#section = this.#section === 'text' ? (this.#opening[mark] ?? 'text') : 'text'
    this.#watch = this.#watcher()
    this.#pending = after
  }

  #closeCall(parts: AnswerPart[]): void {
    const call = parseToolCall(this.#call)
    // Not a call after all: the caller should see what the model wrote rather than nothing.
    parts.push(call ? { kind: 'tool_call', call } : { kind: 'text', text: this.#call })
    this.#call = ''
  }
}
