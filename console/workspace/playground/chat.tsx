import { signal, useSignal, type Signal } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import { useAction } from '../../shared/action.tsx'
import { Failure } from '../../shared/client.ts'
import { Form } from '../../shared/form.tsx'
import { RequestCode } from '../../shared/request-code.tsx'
import type { Model } from '../api.ts'
import { streamChat, type ChatBody } from './chat-stream.ts'
import { ImageInput } from './image-input.tsx'
import { Outcome, type Measured } from './outcome.tsx'
import { Waiting } from './waiting.tsx'
import { fieldsOf, ParameterForm, type Settings } from './parameters.tsx'

/** A conversation with a chat model, streamed. */

interface Turn {
  readonly role: 'user' | 'assistant'
  readonly text: Signal<string>
  readonly reasoning: Signal<string>
  readonly toolCalls: Signal<readonly { readonly name: string; readonly arguments: string }[]>
  readonly images: readonly string[]
  readonly measured: Signal<Measured | undefined>
  readonly failure: Signal<string | undefined>
  /** The request was refused, so neither the question nor its answer is part of the conversation. */
  readonly isRefused: Signal<boolean>
}

const STOPPED = 'Stopped.'

const isUnanswered = (turn: Turn | undefined): boolean =>
  turn?.text.value === '' && turn.reasoning.value === '' && turn.toolCalls.value.length === 0

const turn = (role: Turn['role'], text = '', images: readonly string[] = []): Turn => ({
  role,
  text: signal(text),
  reasoning: signal(''),
  toolCalls: signal([]),
  images,
  measured: signal(undefined),
  failure: signal(undefined),
  isRefused: signal(false),
})

export function Chat({ model, firstPrompt = '' }: { model: Model; firstPrompt?: string }) {
  const turns = useSignal<readonly Turn[]>([])
  const system = useSignal('')
  const draft = useSignal(firstPrompt)
  const images = useSignal<readonly string[]>([])
  const settings = useSignal<Settings>({})
  const running = useSignal<AbortController | undefined>(undefined)
  const action = useAction()
  const [isCodeShown, setCodeShown] = useState(false)
  const takesImages = model.model_categories.includes('vision')

  // Leaving the page stops the answer.
  useEffect(() => () => running.value?.abort(), [])

  function bodyWith(past: readonly Turn[]): ChatBody {
    const messages = [
      ...(system.value.trim() === '' ? [] : [{ role: 'system', content: system.value }]),
      ...past
        .filter(({ text, images: own, isRefused }) => !isRefused.value && (text.value !== '' || own.length > 0))
        .map(toMessage),
    ]
    return { model: model.id, messages, ...fieldsOf(settings.value) } as ChatBody
  }

  async function sendMessages(): Promise<void> {
    const question = turn('user', draft.value, images.value)
    const answer = turn('assistant')
    const body = bodyWith([...turns.value, question])
    turns.value = [...turns.value, question, answer]
    draft.value = ''
    images.value = []
    running.value = new AbortController()
    const refusal = await receive(body, answer, running.value.signal)
    running.value = undefined
    if (refusal === undefined) return
    question.isRefused.value = true
    answer.isRefused.value = true
    // Put the message back into the input, unless the next one is being written already.
    if (draft.value === '' && images.value.length === 0) {
      draft.value = question.text.value
      images.value = question.images
    }
    // The error is shown next to the answer. The form only marks the invalid field, if there is one.
    if (refusal.param !== undefined) throw refusal
  }

  const current = (): ChatBody | undefined => {
    try {
      // Without a draft, show the last request, before its answer.
      if (draft.value === '') return bodyWith(turns.value.slice(0, -1))
      return bodyWith([...turns.value, turn('user', draft.value, images.value)])
    } catch {
      return undefined
    }
  }
  const code = isCodeShown ? current() : undefined

  return (
    <Form class="playground" action={action} submit={sendMessages}>
      <div class="stack">
        <div class="panel conversation" aria-label="Conversation" role="log">
          {turns.value.length === 0 ? (
            <p class="soft">Write a message below. The answer appears here as it is generated.</p>
          ) : null}
          {turns.value.map((it, index) => (
            <TurnView
              key={index}
              turn={it}
              isRunning={running.value !== undefined && index === turns.value.length - 1}
            />
          ))}
          <Waiting model={model.id} is={running.value !== undefined && isUnanswered(turns.value.at(-1))} />
        </div>
        <div class="panel stack">
          <label>
            Message
            <textarea
              rows={3}
              value={draft.value}
              onInput={(event) => void (draft.value = event.currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
                event.preventDefault()
                if (draft.value.trim() !== '' && !running.value) event.currentTarget.form?.requestSubmit()
              }}
            />
            <small>Enter sends, Shift and Enter starts a new line.</small>
          </label>
          {takesImages ? <ImageInput images={images} /> : null}
          <div class="row">
            <button class="primary" type="submit" disabled={running.value !== undefined || draft.value.trim() === ''}>
              Send
            </button>
            <button type="button" disabled={!running.value} onClick={() => running.value?.abort()}>
              Stop
            </button>
            <button
              type="button"
              disabled={turns.value.length === 0 || running.value !== undefined}
              onClick={() => void (turns.value = [])}
            >
              Clear
            </button>
            <button type="button" aria-expanded={isCodeShown} onClick={() => setCodeShown(!isCodeShown)}>
              {isCodeShown ? 'Hide code' : 'Show code'}
            </button>
          </div>
        </div>
        {code === undefined ? null : (
          <section class="panel" aria-label="The same request as code">
            <RequestCode path="/chat/completions" body={{ kind: 'json', value: code }} />
          </section>
        )}
      </div>
      <section class="panel stack settings" aria-label="Settings">
        <label>
          System prompt
          <textarea
            rows={3}
            value={system.value}
            onInput={(event) => void (system.value = event.currentTarget.value)}
          />
        </label>
        <ParameterForm model={model} settings={settings.value} change={(next) => void (settings.value = next)} />
      </section>
    </Form>
  )
}

/** Fills in the answer as it arrives. Resolves with the refusal if the service refused the request. */
async function receive(body: ChatBody, answer: Turn, signal: AbortSignal): Promise<Failure | undefined> {
  const started = performance.now()
  let firstTokenMs: number | undefined
  let requestId = ''
  try {
    const stream = await streamChat(body, signal)
    ;({ requestId } = stream)
    for await (const { text = '', reasoning = '', toolCalls } of stream.pieces) {
      if (text !== '' || reasoning !== '' || toolCalls) firstTokenMs ??= performance.now() - started
      answer.text.value += text
      answer.reasoning.value += reasoning
      for (const { index, name = '', arguments: more = '' } of toolCalls ?? []) {
        const calls = [...answer.toolCalls.value]
        const known = calls[index] ?? { name: '', arguments: '' }
        calls[index] = { name: known.name || name, arguments: known.arguments + more }
        answer.toolCalls.value = calls
      }
    }
  } catch (error) {
    answer.failure.value = signal.aborted ? STOPPED : (error as Error).message
    if (error instanceof Failure) return error
  }
  if (requestId === '') return undefined
  const durationMs = performance.now() - started
  answer.measured.value = { requestId, durationMs, ...(firstTokenMs === undefined ? {} : { firstTokenMs }) }
  return undefined
}

function toMessage({ role, text, images }: Turn): object {
  if (images.length === 0) return { role, content: text.value }
  return {
    role,
    content: [{ type: 'text', text: text.value }, ...images.map((url) => ({ type: 'image_url', image_url: { url } }))],
  }
}

function TurnView({
  turn: { role, text, reasoning, toolCalls, images, measured, failure },
  isRunning,
}: {
  turn: Turn
  isRunning: boolean
}) {
  const end = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (isRunning) end.current?.scrollIntoView({ block: 'nearest' })
  })
  return (
    <div class={`turn ${role}`}>
      <h3>{role === 'user' ? 'You' : 'Model'}</h3>
      {images.map((url, index) => (
        <img key={url} src={url} alt={`Attached image ${index + 1}`} class="attached" />
      ))}
      {reasoning.value === '' ? null : (
        <details class="soft small">
          <summary>Reasoning</summary>
          <p class="answer-text">{reasoning.value}</p>
        </details>
      )}
      <p class="answer-text">{text.value}</p>
      {toolCalls.value.map((call) => (
        <pre key={call.name} class="tool-call">
          <code>
            {call.name}({call.arguments})
          </code>
        </pre>
      ))}
      {failure.value === undefined ? null : (
        <p class={failure.value === STOPPED ? 'soft small' : 'notice bad'}>{failure.value}</p>
      )}
      {measured.value === undefined ? null : <Outcome of={measured.value} />}
      <div ref={end} />
    </div>
  )
}
