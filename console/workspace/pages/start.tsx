import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { useData } from '../../shared/data.ts'
import { count } from '../../shared/format.ts'
import { Empty, PageHead, Ready, Stale } from '../../shared/parts.tsx'
import { RequestCode } from '../../shared/request-code.tsx'
import { api, type Model } from '../api.ts'
import { Arriving } from '../arriving.tsx'
import { live } from '../live.ts'
import { streamChat, type ChatBody } from '../playground/chat/chat-stream.ts'
import { Outcome, type Measured } from '../playground/outcome.tsx'
import { Waiting } from '../playground/waiting.tsx'

/** The first minute: which models are ready, a first request with its answer, and the code for it. */
export function StartPage() {
  const { samples, isStale } = live.use()
  const sample = samples.at(-1)
  const ready = sample?.models.filter(({ available }) => available).length
  const loaded = useData(async (signal) => (await api('models', { query: { scope: 'catalog' }, signal })).data, [ready])
  return (
    <>
      <PageHead title="Start" about="Send a first request, then take its code with you." />
      <Stale is={isStale} />
      <Ready of={loaded}>
        {(models) => {
          const usable = models.filter(({ available }) => available)
          const chat = usable.find(({ model_categories: it }) => it.includes('llm'))
          return (
            <>
              <p>
                <strong>
                  {count(usable.length)} of {count(models.length)} models {usable.length === 1 ? 'is' : 'are'} ready.
                </strong>{' '}
                <a href="/console/models">See all models</a>
              </p>
              <Arriving downloads={sample?.downloads ?? []} />
              {chat ? <FirstRequest key={chat.id} model={chat} /> : <NoChatModel models={models} />}
            </>
          )
        }}
      </Ready>
    </>
  )
}

function NoChatModel({ models }: { models: readonly Model[] }) {
  const chats = models.filter(({ model_categories: it }) => it.includes('llm'))
  const isArriving = chats.some(({ unavailable_reason: reason }) => reason === 'downloading')
  return (
    <Empty title={isArriving ? 'A chat model is being downloaded' : 'No chat model can be called'}>
      {isArriving ? 'It appears here when it is complete.' : chats[0]?.unavailable_message} Until then,{' '}
      <a href="/console/playground">try another model</a>.
    </Empty>
  )
}

function FirstRequest({ model }: { model: Model }) {
  const prompt = useSignal('Name the capital of France.')
  const answer = useSignal('')
  const measured = useSignal<Measured | undefined>(undefined)
  const problem = useSignal<string | undefined>(undefined)
  const running = useSignal<AbortController | undefined>(undefined)
  useEffect(() => () => running.value?.abort(), [])
  const body = {
    model: model.id,
    messages: [{ role: 'user', content: prompt.value }],
    max_tokens: 60,
    // Greedy sampling gives small models their best chance of a correct first answer.
    ...(model.supported_parameters.includes('temperature') ? { temperature: 0 } : {}),
  } as ChatBody

  async function sendRequest(): Promise<void> {
    const controller = new AbortController()
    running.value = controller
    answer.value = ''
    measured.value = undefined
    problem.value = undefined
    const started = performance.now()
    let firstTokenMs: number | undefined
    try {
      const { requestId, pieces } = await streamChat(body, controller.signal)
      for await (const { text = '' } of pieces) {
        if (text !== '') firstTokenMs ??= performance.now() - started
        answer.value += text
      }
      const durationMs = performance.now() - started
      measured.value = { requestId, durationMs, ...(firstTokenMs === undefined ? {} : { firstTokenMs }) }
    } catch (error) {
      if (!controller.signal.aborted) problem.value = (error as Error).message
    }
    running.value = undefined
  }

  return (
    <div class="columns">
      <form
        class="panel stack"
        onSubmit={(event) => {
          event.preventDefault()
          void sendRequest()
        }}
      >
        <h2>Ask {model.name}</h2>
        <label>
          Message
          <textarea
            rows={2}
            value={prompt.value}
            onInput={(event) => void (prompt.value = event.currentTarget.value)}
          />
        </label>
        <div class="row">
          <button class="primary" type="submit" disabled={running.value !== undefined || prompt.value.trim() === ''}>
            {running.value ? 'Waiting …' : 'Send'}
          </button>
          <a href={`/console/playground?model=${encodeURIComponent(model.id)}`}>More in the playground</a>
        </div>
        <Waiting model={model.id} is={running.value !== undefined && answer.value === ''} />
        <div role="log" aria-label="Answer">
          {problem.value === undefined ? null : <div class="notice bad">{problem.value}</div>}
          {answer.value === '' ? null : <p class="answer-text first-answer">{answer.value}</p>}
          {measured.value === undefined ? null : <Outcome of={measured.value} />}
        </div>
      </form>
      <section class="panel stack" aria-labelledby="code">
        <h2 id="code">The same from your program</h2>
        <RequestCode path="/chat/completions" body={{ kind: 'json', value: body }} />
        <p class="small soft">
          It needs a key in <code>WEIR_API_KEY</code>. <a href="/console/keys">Create one</a>
        </p>
      </section>
    </div>
  )
}
