import { Icon } from '../../../shared/icon.tsx'
import { codeIcon, commentDiscussionIcon, historyIcon, plusIcon, slidersIcon } from '../../../shared/icons.ts'
import { useSignal } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import { useAction } from '../../../shared/action.tsx'
import type { Failure } from '../../../shared/client.ts'
import { Form } from '../../../shared/form.tsx'
import { Empty, Sheet } from '../../../shared/parts.tsx'
import { RequestCode } from '../../../shared/request-code.tsx'
import type { Model } from '../../api.ts'
import { FollowedLoad } from '../waiting.tsx'
import { AnswerView } from './answer.tsx'
import type { ChatBody } from './chat-stream.ts'
import { Composer } from './composer.tsx'
import type { Question } from './conversation.ts'
import { useFollow } from './follow.ts'
import { HistorySheet } from './history.tsx'
import { loadLibrary } from './library.ts'
import { QuestionView } from './question.tsx'
import { SettingsSheet } from './settings.tsx'
import { ToolResultsView } from './tool-calls.tsx'
import { takesImages, useConversation, wasTaken } from './use-conversation.ts'

const NOTHING: Question = { text: '', images: [] }

/** A conversation with one model, or with several side by side. */
export function Chat({
  models,
  nameOf,
  id,
  open,
  firstPrompt = '',
}: {
  models: readonly [Model, ...Model[]]
  nameOf: (model: string) => string
  /** Of the conversation. undefined: a new one. */
  id: string | undefined
  open: (id: string | undefined, replaces?: boolean) => void
  firstPrompt?: string | undefined
}) {
  const conversation = useConversation(id, models, (own) => open(own, true))
  const draft = useSignal<Question>({ ...NOTHING, text: firstPrompt })
  const area = useRef<HTMLTextAreaElement>(null)
  const settingsSheet = useRef<HTMLDialogElement>(null)
  const [sheet, setSheet] = useState<'history' | 'code'>()
  const action = useAction()
  const { frame, content, isFollowing, onScroll, toEnd } = useFollow()
  useEffect(() => void loadLibrary(), [])
  const exchanges = conversation.exchanges.value
  const isRunning = conversation.isRunning.value
  const lastTaken = exchanges.findLastIndex(wasTaken)

  async function ask(): Promise<void> {
    const question = draft.value
    const began = conversation.ask(question)
    draft.value = NOTHING
    area.current?.focus()
    toEnd()
    const refusal = await began.catch((error: Failure) => error)
    if (refusal === undefined) return
    // Put the message back into the input, unless the next one is being written already.
    if (draft.value.text === '' && draft.value.images.length === 0) draft.value = question
    // The error is shown next to the answer. The form only marks the invalid field, if there is one.
    if (refusal.param !== undefined) throw refusal
  }

  /** The form sends this instead of the message, and marks the invalid field in the same way. */
  const other = useRef<(() => Promise<Failure | undefined>) | undefined>(undefined)
  function run(work: () => Promise<Failure | undefined>): void {
    other.current = work
    area.current?.form?.requestSubmit()
    other.current = undefined
  }

  async function submit(): Promise<void> {
    if (other.current === undefined) return ask()
    toEnd()
    const refusal = await other.current()
    if (refusal?.param !== undefined) throw refusal
  }

  const [first] = models
  const blind = models.filter((model) => !takesImages(model)).map(({ name }) => name)
  return (
    <Form class="chat" action={action} submit={submit}>
      <FollowedLoad />
      <div class="row chat-bar">
        <button type="button" disabled={exchanges.length === 0} onClick={() => open(undefined)}>
          <Icon of={plusIcon} />
          New chat
        </button>
        <button type="button" aria-haspopup="dialog" onClick={() => setSheet('history')}>
          <Icon of={historyIcon} />
          History
        </button>
        <button type="button" aria-haspopup="dialog" onClick={() => settingsSheet.current?.showModal()}>
          <Icon of={slidersIcon} />
          Settings
        </button>
        <button type="button" aria-haspopup="dialog" onClick={() => setSheet('code')}>
          <Icon of={codeIcon} />
          Show code
        </button>
      </div>
      <div class="conversation" ref={frame} onScroll={onScroll} tabIndex={0} role="log" aria-label="Conversation">
        <div ref={content} class="exchanges">
          {exchanges.length === 0 ? (
            <Empty icon={commentDiscussionIcon} title="Start a conversation">
              Write a message below. The answer appears here as it is generated.
            </Empty>
          ) : null}
          {exchanges.map(({ question, answers }, at) => (
            <div key={at} class="exchange">
              {question.toolResults ? (
                <ToolResultsView of={question.toolResults} />
              ) : (
                <QuestionView
                  question={question}
                  edit={isRunning ? undefined : (changed) => run(() => conversation.edit(at, changed))}
                />
              )}
              <div class="answers">
                {answers.map((answer, index) => (
                  <AnswerView
                    key={index}
                    answer={answer}
                    name={nameOf(answer.model)}
                    regenerate={
                      isRunning || at < exchanges.length - 1
                        ? undefined
                        : () => run(() => conversation.regenerate(answer))
                    }
                    giveResults={
                      isRunning || at !== lastTaken || !models.some(({ id: own }) => own === answer.model)
                        ? undefined
                        : (results) => run(() => conversation.giveResults(answer, results))
                    }
                    keep={() => void conversation.save()}
                  />
                ))}
              </div>
            </div>
          ))}
        </div>
      </div>
      <div class="below">
        {isFollowing.value ? null : (
          <button type="button" class="to-end" onClick={toEnd}>
            To the end ↓
          </button>
        )}
        {conversation.isKept.value ? null : (
          <p class="small soft" role="status">
            This browser cannot keep this conversation. It is lost when the page is left.
          </p>
        )}
        <Composer
          draft={draft}
          area={area}
          isRunning={isRunning}
          stop={conversation.stop}
          images={{
            isAllowed: blind.length < models.length,
            note:
              blind.length === 0
                ? undefined
                : `${blind.join(' and ')} cannot see images, and ${blind.length === 1 ? 'gets' : 'get'} the text alone.`,
          }}
        />
      </div>
      <SettingsSheet
        sheet={settingsSheet}
        models={models}
        system={conversation.system.value}
        settings={conversation.settings.value}
        change={(system, settings) => {
          conversation.system.value = system
          conversation.settings.value = settings
        }}
      />
      {sheet === 'history' ? <HistorySheet current={id} open={open} close={() => setSheet(undefined)} /> : null}
      {sheet === 'code' ? (
        <Sheet title="The same request as code" close={() => setSheet(undefined)}>
          <ChatCode body={() => conversation.bodyFor(first, draft.value)} />
        </Sheet>
      ) : null}
    </Form>
  )
}

function ChatCode({ body }: { body: () => ChatBody }) {
  try {
    return <RequestCode path="/chat/completions" body={{ kind: 'json', value: body() }} />
  } catch (error) {
    return <p class="notice bad">{(error as Error).message}</p>
  }
}
