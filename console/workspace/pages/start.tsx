import { useSignal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import { useData } from '../../shared/data.ts'
import { count } from '../../shared/format.ts'
import { Icon } from '../../shared/icon.tsx'
import { arrowRightIcon, paperAirplaneIcon, plusIcon } from '../../shared/icons.ts'
import { CreateKey } from '../../shared/keys.tsx'
import { Code, Copy, Empty, PageHead, Ready, Stale } from '../../shared/parts.tsx'
import { codeOf, RequestCode, VARIABLE } from '../../shared/request-code.tsx'
import { Steps } from '../../shared/steps.tsx'
import { api, type Answer, type Model } from '../api.ts'
import { Arriving } from '../arriving.tsx'
import { live } from '../live.ts'
import { streamChat, type ChatBody } from '../playground/chat/chat-stream.ts'
import { Outcome, type Measured } from '../playground/outcome.tsx'
import { Waiting } from '../playground/waiting.tsx'
import { may } from '../session.ts'
import { keyMaker } from './keys.tsx'

/** The first minute: a key, a first request with its answer, and the code for it. What is done has a tick. */

const COPIED_AS = 'weir-code-copied'

export function StartPage() {
  const { samples, isStale } = live.use()
  const sample = samples.at(-1)
  const ready = sample?.models.filter(({ available }) => available).length
  const models = useData(async (signal) => (await api('models', { query: { scope: 'catalog' }, signal })).data, [ready])
  const [hasRequest, setHasRequest] = useState(false)
  // With every sample, so that a request from a terminal gets its tick at once; none after that.
  const done = useData(
    async (signal) => {
      const [keys, requests] = await Promise.all([
        api('keys', { query: { state: 'valid', limit: 1 }, signal }),
        api('requests', { query: { limit: 1 }, signal }),
      ])
      if (requests.data.length > 0) setHasRequest(true)
      return { key: keys.data[0], request: requests.data[0] }
    },
    [hasRequest ? 0 : sample?.at],
  )
  return (
    <>
      <PageHead title="Start" about="A key, a first request, and the code for it.">
        {hasRequest ? (
          <a class="button" href="/console">
            Go to the overview
            <Icon of={arrowRightIcon} />
          </a>
        ) : null}
      </PageHead>
      <Stale is={isStale} />
      <Arriving downloads={sample?.downloads ?? []} />
      <Ready of={models}>
        {(all) => <Ready of={done}>{(it) => <Walk models={all} done={it} reload={done.reload} />}</Ready>}
      </Ready>
    </>
  )
}

interface Done {
  readonly key: Answer<'keys'>['data'][number] | undefined
  readonly request: Answer<'requests'>['data'][number] | undefined
}

function Walk({ models, done, reload }: { models: readonly Model[]; done: Done; reload: () => void }) {
  const [isCreating, setCreating] = useState(false)
  const [hasCode, setHasCode] = useState(() => kept(COPIED_AS))
  const [prompt, setPrompt] = useState('Name the capital of France.')
  const usable = models.filter(({ available }) => available)
  const chat = usable.find(({ model_categories: it }) => it.includes('llm'))
  const body = chat && firstBody(chat, prompt)
  return (
    <>
      <Steps
        of={[
          {
            title: 'Make a key',
            isDone: done.key !== undefined,
            content: (
              <div class="row apart">
                <p class="soft">
                  {done.key ? (
                    <>
                      {done.key.name ?? 'A key'} <code>{done.key.redacted}</code> is valid. Give each program one of its
                      own.
                    </>
                  ) : (
                    'Programs identify themselves with a key. It is shown once.'
                  )}
                  {may('makeKey') ? null : ' Administrators of the workspace create keys. The playground needs none.'}
                </p>
                {may('makeKey') ? (
                  <button type="button" class={done.key ? undefined : 'primary'} onClick={() => setCreating(true)}>
                    <Icon of={plusIcon} />
                    {done.key ? 'Create another key' : 'Create a key'}
                  </button>
                ) : null}
              </div>
            ),
          },
          {
            title: 'Send the first request',
            isDone: done.request !== undefined,
            content:
              chat && body ? (
                <FirstRequest
                  key={chat.id}
                  model={chat}
                  body={body}
                  prompt={prompt}
                  change={setPrompt}
                  hasSent={reload}
                />
              ) : (
                <NoChatModel models={models} />
              ),
          },
          {
            title: 'Take the code with you',
            isDone: hasCode,
            content: body ? (
              <>
                <p class="soft">
                  It reads the key from <code>{VARIABLE}</code>. Any SDK of OpenAI works with this base address.
                </p>
                <RequestCode
                  path={CHAT}
                  body={{ kind: 'json', value: body }}
                  hasCopied={() => {
                    keep(COPIED_AS)
                    setHasCode(true)
                  }}
                />
              </>
            ) : (
              <p class="soft">It appears here with the first chat model.</p>
            ),
          },
        ]}
      />
      <p class="soft">
        {count(usable.length)} of {count(models.length)} models {usable.length === 1 ? 'is' : 'are'} ready.{' '}
        <a href="/console/models">See all models</a>
      </p>
      {isCreating ? (
        <CreateKey
          {...keyMaker}
          close={() => {
            setCreating(false)
            reload()
          }}
        />
      ) : null}
    </>
  )
}

const CHAT = '/chat/completions'

function firstBody(model: Model, prompt: string): ChatBody {
  return {
    model: model.id,
    messages: [{ role: 'user', content: prompt }],
    max_tokens: 60,
    // Greedy sampling gives small models their best chance of a correct first answer.
    ...(model.supported_parameters.includes('temperature') ? { temperature: 0 } : {}),
  }
}

/** Without storage, a tick lasts as long as the page. */
function kept(name: string): boolean {
  try {
    return localStorage.getItem(name) !== null
  } catch {
    return false
  }
}
function keep(name: string): void {
  try {
    localStorage.setItem(name, 'yes')
  } catch {}
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

function FirstRequest({
  model,
  body,
  prompt,
  change,
  hasSent,
}: {
  model: Model
  body: ChatBody
  prompt: string
  change: (prompt: string) => void
  hasSent: () => void
}) {
  const answer = useSignal('')
  const measured = useSignal<Measured | undefined>(undefined)
  const problem = useSignal<string | undefined>(undefined)
  const running = useSignal<AbortController | undefined>(undefined)
  useEffect(() => () => running.value?.abort(), [])

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
      hasSent()
    } catch (error) {
      if (!controller.signal.aborted) problem.value = (error as Error).message
    }
    running.value = undefined
  }

  const command = codeOf('curl', CHAT, { kind: 'json', value: body })
  return (
    <>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault()
          void sendRequest()
        }}
      >
        <label>
          Ask {model.name}
          <input value={prompt} maxLength={2000} onInput={(event) => change(event.currentTarget.value)} />
        </label>
        <div class="row">
          <button class="primary" type="submit" disabled={running.value !== undefined || prompt.trim() === ''}>
            <Icon of={paperAirplaneIcon} />
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
      <details>
        <summary>Or paste it into a terminal</summary>
        <div class="stack tight">
          <div class="row apart">
            <p class="small soft">
              With your key in <code>{VARIABLE}</code>. The tick appears when the request arrives.
            </p>
            <Copy text={command} />
          </div>
          <Code text={command} label="The request for a terminal" />
        </div>
      </details>
    </>
  )
}
