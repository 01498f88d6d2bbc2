import { useState } from 'preact/hooks'
import { Copy } from '../../../shared/parts.tsx'
import type { Question } from './conversation.ts'
import { isSend } from './composer.tsx'

/** A question, which can be changed and asked again. */
export function QuestionView({
  question,
  edit,
}: {
  question: Question
  /** undefined while an answer is being generated. */
  edit: ((question: Question) => void) | undefined
}) {
  const [draft, setDraft] = useState<string>()
  const isEditing = draft !== undefined && edit !== undefined
  function send(): void {
    if (!draft?.trim()) return
    setDraft(undefined)
    edit?.({ ...question, text: draft })
  }
  return (
    <section class="question" aria-label="Question">
      <h2 class="visually-hidden">You</h2>
      {question.images.map((url, index) => (
        <img key={index} src={url} alt={`Attached image ${index + 1}`} class="attached" />
      ))}
      {isEditing ? (
        <textarea
          aria-label="Edit the question"
          rows={3}
          value={draft}
          ref={(area) => area?.focus()}
          onInput={(event) => setDraft(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Escape') setDraft(undefined)
            if (!isSend(event)) return
            event.preventDefault()
            send()
          }}
        />
      ) : (
        <p class="answer-text bubble">{question.text}</p>
      )}
      <div class="row actions">
        {isEditing ? (
          <>
            <button type="button" class="primary" disabled={draft.trim() === ''} onClick={send}>
              Ask again
            </button>
            <button type="button" onClick={() => setDraft(undefined)}>
              Cancel
            </button>
          </>
        ) : (
          <>
            <Copy text={question.text} />
            {edit === undefined ? null : (
              <button type="button" onClick={() => setDraft(question.text)}>
                Edit
              </button>
            )}
          </>
        )}
      </div>
    </section>
  )
}
