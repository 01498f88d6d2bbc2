import { signal, type Signal } from '@preact/signals'
import { keeper } from '../kept.ts'
import type { Measured } from '../outcome.tsx'
import type { ChatBody } from './chat-stream.ts'
import type { Settings } from './settings.tsx'

/** A conversation: questions, each with the answers of the models that were asked. */

export interface Question {
  readonly text: string
  /** Data URLs. */
  readonly images: readonly string[]
  /** Sent instead of a text. */
  readonly toolResults?: ToolResults
}

export interface ToolResults {
  /** The model that called the tools. */
  readonly model: string
  readonly results: readonly { readonly id: string; readonly name: string; readonly content: string }[]
}

export interface ToolCall {
  readonly id: string
  readonly name: string
  readonly arguments: string
}

/** An answer as it grows. */
export interface Answer {
  readonly model: string
  readonly text: Signal<string>
  readonly reasoning: Signal<string>
  readonly toolCalls: Signal<readonly ToolCall[]>
  readonly measured: Signal<Measured | undefined>
  readonly failure: Signal<string | undefined>
  /** The service refused the request, so the question was not answered. */
  readonly isRefused: Signal<boolean>
  readonly isRunning: Signal<boolean>
}

export interface Exchange {
  readonly question: Question
  readonly answers: readonly Answer[]
}

export const STOPPED = 'Stopped.'
const INTERRUPTED = 'The page was left before the answer ended.'

interface StoredAnswer {
  readonly model: string
  readonly text: string
  readonly reasoning: string
  readonly toolCalls: readonly ToolCall[]
  readonly measured?: Measured
  readonly failure?: string
  readonly isRefused: boolean
}

export interface StoredConversation {
  readonly system: string
  readonly settings: Settings
  readonly exchanges: readonly { readonly question: Question; readonly answers: readonly StoredAnswer[] }[]
}

/** Images are most of the size: about 15 photographs of a phone. */
export const conversations = keeper<{ readonly title: string }, StoredConversation>('conversations', {
  count: 100,
  size: 50_000_000,
})

export function newAnswer(model: string): Answer {
  return restoredAnswer({ model, text: '', reasoning: '', toolCalls: [], isRefused: false })
}

function restoredAnswer(stored: StoredAnswer): Answer {
  return {
    model: stored.model,
    text: signal(stored.text),
    reasoning: signal(stored.reasoning),
    // Older conversations have no ids.
    toolCalls: signal(stored.toolCalls.map((call, index) => ({ ...call, id: call.id ?? `call_${index}` }))),
    measured: signal(stored.measured),
    failure: signal(stored.failure),
    isRefused: signal(stored.isRefused),
    isRunning: signal(false),
  }
}

export function restored({ exchanges }: StoredConversation): readonly Exchange[] {
  return exchanges.map(({ question, answers }) => ({ question, answers: answers.map(restoredAnswer) }))
}

export function storedExchanges(exchanges: readonly Exchange[]): StoredConversation['exchanges'] {
  return exchanges.map(({ question, answers }) => ({ question, answers: answers.map(storedAnswer) }))
}

function storedAnswer(answer: Answer): StoredAnswer {
  // What is kept of an answer that grows is what is left if the page is closed now.
  const failure = answer.isRunning.value ? INTERRUPTED : answer.failure.value
  return {
    model: answer.model,
    text: answer.text.value,
    reasoning: answer.reasoning.value,
    toolCalls: answer.toolCalls.value,
    isRefused: answer.isRefused.value,
    ...(answer.measured.value === undefined ? {} : { measured: answer.measured.value }),
    ...(failure === undefined ? {} : { failure }),
  }
}

export const isEmpty = ({ text, reasoning, toolCalls }: Answer): boolean =>
  text.value === '' && reasoning.value === '' && toolCalls.value.length === 0

/** A model is shown its own answers; where it was not asked, those of another. */
const answerFor = (exchange: Exchange, model: string): Answer | undefined =>
  exchange.answers.find((answer) => answer.model === model) ?? exchange.answers[0]

export function messagesFor(
  model: { readonly id: string; readonly takesImages: boolean },
  system: string,
  past: readonly Exchange[],
  question: Question,
): ChatBody['messages'] {
  const asked = ({ text, images, toolResults }: Question): readonly object[] => {
    if (toolResults) return toolResults.results.map(({ id, content }) => ({ role: 'tool', tool_call_id: id, content }))
    const urls = model.takesImages ? images : []
    const parts = [{ type: 'text', text }, ...urls.map((url) => ({ type: 'image_url', image_url: { url } }))]
    return [{ role: 'user', content: urls.length > 0 ? parts : text }]
  }
  // A question that got nothing is not part of the conversation: it was refused, or stopped at once.
  const answered = past.filter((exchange) => {
    const answer = answerFor(exchange, model.id)
    return answer && (answer.text.value !== '' || answer.toolCalls.value.length > 0)
  })
  return [
    ...(system.trim() === '' ? [] : [{ role: 'system', content: system }]),
    ...answered.flatMap((exchange, at) => {
      const { toolResults } = answered[at + 1]?.question ?? question
      const answer = answerFor(exchange, toolResults?.model ?? model.id)
      return [...asked(exchange.question), ...(answer ? said(answer, toolResults !== undefined) : [])]
    }),
    ...asked(question),
  ] as ChatBody['messages']
}

/** Calls without results are left out: engines refuse them. */
function said({ text: { value: content }, toolCalls }: Answer, hasResults: boolean): readonly object[] {
  if (!hasResults) return content === '' ? [] : [{ role: 'assistant', content }]
  const calls = toolCalls.value.map(({ id, ...call }) => ({ id, type: 'function', function: call }))
  return [{ role: 'assistant', content: content === '' ? null : content, tool_calls: calls }]
}

/** How the list of conversations names one: the first words of the first question. */
export function titleOf([first]: readonly Exchange[]): string {
  const words = first?.question.text.trim().replaceAll(/\s+/g, ' ') ?? ''
  if (words === '') return 'Images'
  return words.length <= 80 ? words : `${words.slice(0, 79)}…`
}
