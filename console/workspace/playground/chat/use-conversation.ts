import { batch, useSignal, type ReadonlySignal, type Signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Failure } from '../../../shared/client.ts'
import type { Model } from '../../api.ts'
import { newId } from '../kept.ts'
import type { ChatBody } from './chat-stream.ts'
import {
  conversations,
  messagesFor,
  newAnswer,
  restored,
  storedExchanges,
  titleOf,
  type Answer,
  type Exchange,
  type Question,
  type ToolResults,
} from './conversation.ts'
import { receive } from './receive.ts'
import { fieldsOf, type Settings } from './settings.tsx'

/** The open conversation: what was said, what runs, and what can be done with it. */
export interface OpenConversation {
  readonly exchanges: ReadonlySignal<readonly Exchange[]>
  readonly isRunning: ReadonlySignal<boolean>
  /** False if the browser could not keep it: it is lost with the page. */
  readonly isKept: ReadonlySignal<boolean>
  readonly system: Signal<string>
  readonly settings: Signal<Settings>
  /** Asks every chosen model. Resolves with the refusal if none of them took the request. */
  readonly ask: (question: Question) => Promise<Failure | undefined>
  /** Asks again with another question. What was said after it is dropped. */
  readonly edit: (at: number, question: Question) => Promise<Failure | undefined>
  /** Replaces an answer to the last question. */
  readonly regenerate: (old: Answer) => Promise<Failure | undefined>
  /** Goes on with what the tools returned that a model has called. */
  readonly giveResults: (to: Answer, results: ToolResults['results']) => Promise<Failure | undefined>
  readonly stop: () => void
  /** The next request, or the last one while no other has been written. Throws what is wrong with the settings. */
  readonly bodyFor: (model: Model, draft: Question) => ChatBody
  /** Keeps it now, for changes outside of an answer. */
  readonly save: () => Promise<void>
}

interface Request {
  readonly body: ChatBody
  readonly answer: Answer
}

const SAVE_MS = 2000
/** What the code has before a message was written. */
const EXAMPLE: Question = { text: 'Hello!', images: [] }

export const takesImages = (model: Model): boolean => model.model_categories.includes('vision')

/** Opens the conversation with this id, or an empty one. `named` is called with the id that it gets when it begins. */
export function useConversation(
  id: string | undefined,
  models: readonly Model[],
  named: (id: string) => void,
): OpenConversation {
  const exchanges = useSignal<readonly Exchange[]>([])
  const isRunning = useSignal(false)
  const isKept = useSignal(true)
  const system = useSignal('')
  const settings = useSignal<Settings>({})
  const open = useRef<string | undefined>(undefined)
  const controller = useRef<AbortController | undefined>(undefined)
  const stop = (): void => controller.current?.abort()

  useEffect(() => {
    // The conversation that has just got its id is open already.
    if (open.current === id) return
    stop()
    open.current = id
    const show = (stored: Awaited<ReturnType<typeof conversations.read>>): void =>
      batch(() => {
        exchanges.value = stored ? restored(stored) : []
        system.value = stored?.system ?? ''
        settings.value = stored?.settings ?? {}
        isKept.value = true
      })
    if (id === undefined) show(undefined)
    else void conversations.read(id).then((stored) => open.current === id && show(stored))
  }, [id])
  // Leaving the page stops the answers.
  useEffect(() => stop, [])

  async function saveAs(own: string | undefined): Promise<void> {
    if (own === undefined || own !== open.current || exchanges.value.length === 0) return
    const stored = {
      system: system.value,
      settings: settings.value,
      exchanges: storedExchanges(exchanges.value),
    }
    isKept.value = await conversations.keep(own, { title: titleOf(exchanges.value) }, stored)
  }

  function bodyAfter(past: readonly Exchange[], model: Model, question: Question): ChatBody {
    const reader = { id: model.id, takesImages: takesImages(model) }
    return {
      model: model.id,
      messages: messagesFor(reader, system.value, past, question),
      ...fieldsOf(settings.value, model),
    }
  }

  function requestOf(past: readonly Exchange[], model: Model, question: Question): Request {
    return { answer: newAnswer(model.id), body: bodyAfter(past, model, question) }
  }

  async function run(requests: readonly Request[]): Promise<Failure | undefined> {
    const current = new AbortController()
    controller.current = current
    isRunning.value = true
    if (open.current === undefined) {
      open.current = newId()
      named(open.current)
    }
    const own = open.current
    const running = requests.map(({ body, answer }) => receive(body, answer, current.signal))
    void saveAs(own)
    const saving = setInterval(() => void saveAs(own), SAVE_MS)
    const refusals = await Promise.all(running)
    clearInterval(saving)
    isRunning.value = false
    await saveAs(own)
    return refusals.every((it) => it !== undefined) ? refusals[0] : undefined
  }

  function askBehind(past: readonly Exchange[], question: Question, asked = models): Promise<Failure | undefined> {
    const requests = asked.map((model) => requestOf(past, model, question))
    exchanges.value = [...past, { question, answers: requests.map(({ answer }) => answer) }]
    return run(requests)
  }

  return {
    exchanges,
    isRunning,
    isKept,
    system,
    settings,
    stop,
    bodyFor(model, draft) {
      const past = exchanges.value.filter(wasTaken)
      const last = past.at(-1)
      return draft.text === '' && last
        ? bodyAfter(past.slice(0, -1), model, last.question)
        : bodyAfter(past, model, draft.text === '' && draft.images.length === 0 ? EXAMPLE : draft)
    },
    save: () => saveAs(open.current),
    ask: async (question) => askBehind(exchanges.value.filter(wasTaken), question),
    edit: async (at, question) => askBehind(exchanges.value.slice(0, at), question),
    async giveResults({ model: own }, results) {
      const asked = models.filter(({ id: it }) => it === own)
      const toolResults = { model: own, results }
      return askBehind(exchanges.value.filter(wasTaken), { text: '', images: [], toolResults }, asked)
    },
    async regenerate(old) {
      const past = exchanges.value.slice(0, -1)
      const last = exchanges.value.at(-1)
      const model = models.find(({ id: own }) => own === old.model) ?? models[0]
      if (!last || !model) return undefined
      const request = requestOf(past, model, last.question)
      exchanges.value = [...past, { ...last, answers: last.answers.map((it) => (it === old ? request.answer : it)) }]
      return run([request])
    },
  }
}

export const wasTaken = ({ answers }: Exchange): boolean => !answers.every(({ isRefused }) => isRefused.value)
