import { Copy } from '../../../shared/parts.tsx'
import { Outcome } from '../outcome.tsx'
import { Waiting } from '../waiting.tsx'
import { Json } from './code-block.tsx'
import { isEmpty, STOPPED, type Answer, type ToolResults } from './conversation.ts'
import { Markdown } from './markdown.tsx'
import { ToolCalls } from './tool-calls.tsx'

/** One answer: its thoughts folded away, its text, its tool calls, and what it took. */
export function AnswerView({
  answer,
  name,
  regenerate,
  giveResults,
  keep,
}: {
  answer: Answer
  /** Of the model. */
  name: string
  /** undefined if it cannot be replaced now. */
  regenerate: (() => void) | undefined
  /** undefined if the results of tools cannot be sent now. */
  giveResults: ((results: ToolResults['results']) => void) | undefined
  /** Called when the figures of the ledger are there. */
  keep: () => void
}) {
  const { text, reasoning, toolCalls, failure, measured, isRunning } = answer
  const isThinking = isRunning.value && text.value === '' && toolCalls.value.length === 0
  return (
    <section class="answer" aria-label={`Answer of ${name}`} aria-busy={isRunning.value}>
      <h2>{name}</h2>
      <Waiting model={answer.model} is={isRunning.value && isEmpty(answer)} />
      {reasoning.value === '' ? null : (
        <details class="reasoning">
          <summary>{isThinking ? 'Thinking …' : 'Thoughts'}</summary>
          <p class="answer-text">{reasoning.value}</p>
        </details>
      )}
      {text.value === '' ? null : isJson(text.value) && !isRunning.value ? (
        <Json text={text.value} title="JSON" />
      ) : (
        <Markdown text={text.value} />
      )}
      <ToolCalls calls={toolCalls.value} give={giveResults} />
      {failure.value === undefined ? null : (
        <p class={failure.value === STOPPED ? 'soft small' : 'notice bad'}>{failure.value}</p>
      )}
      {measured.value === undefined ? null : (
        <Outcome
          of={measured.value}
          found={(row) => {
            if (measured.value) measured.value = { ...measured.value, row }
            keep()
          }}
        />
      )}
      {isRunning.value ? null : (
        <div class="row actions">
          {text.value === '' ? null : <Copy text={text.value} />}
          {regenerate === undefined ? null : (
            <button type="button" onClick={regenerate}>
              Regenerate
            </button>
          )}
        </div>
      )}
    </section>
  )
}

/** Whether an answer is one whole value of JSON, as one with a schema is. */
function isJson(text: string): boolean {
  if (!/^\s*[[{]/.test(text)) return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
