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
}

export interface ToolCall {
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
    toolCalls: signal(stored.toolCalls),
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
  const asked = ({ text, images }: Question): object => ({
    role: 'user',
    content:
      model.takesImages && images.length > 0
        ? [{ type: 'text', text }, ...images.map((url) => ({ type: 'image_url', image_url: { url } }))]
        : text,
  })
  return [
    ...(system.trim() === '' ? [] : [{ role: 'system', content: system }]),
    ...past.flatMap((exchange) => {
      const answer = answerFor(exchange, model.id)
      // A question that got nothing is not part of the conversation: it was refused, or stopped at once.
      if (!answer || (answer.text.value === '' && answer.toolCalls.value.length === 0)) return []
      const content = answer.text.value
      return [asked(exchange.question), ...(content === '' ? [] : [{ role: 'assistant', content }])]
    }),
    asked(question),
  ] as ChatBody['messages']
}

/** How the list of conversations names one: the first words of the first question. */
export function titleOf([first]: readonly Exchange[]): string {
  const words = first?.question.text.trim().replaceAll(/\s+/g, ' ') ?? ''
  if (words === '') return 'Images'
  return words.length <= 80 ? words : `${words.slice(0, 79)}…`
}
