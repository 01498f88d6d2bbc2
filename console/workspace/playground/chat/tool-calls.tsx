import { useState } from 'preact/hooks'
import { Json } from './code-block.tsx'
import type { ToolCall, ToolResults } from './conversation.ts'

/** What a model calls, with a field for the result of each call. */
export function ToolCalls({
  calls,
  give,
}: {
  calls: readonly ToolCall[]
  /** undefined if the conversation cannot go on from here. */
  give: ((results: ToolResults['results']) => void) | undefined
}) {
  const [typed, setTyped] = useState<Readonly<Record<string, string>>>({})
  if (calls.length === 0) return null
  const results = calls.map(({ id, name }) => ({ id, name, content: typed[id] ?? '' }))
  return (
    <div class="stack tight">
      {results.map(({ id, name, content }, index) => (
        <div key={id} class="stack tight">
          <Json text={calls[index]?.arguments ?? ''} title={`Calls ${name}`} />
          {give === undefined ? null : (
            <label>
              Result of {name}
              <textarea
                rows={2}
                class="code"
                spellcheck={false}
                placeholder="What your program would return"
                value={content}
                onInput={(event) => setTyped({ ...typed, [id]: event.currentTarget.value })}
              />
            </label>
          )}
        </div>
      ))}
      {give === undefined ? null : (
        <div class="row">
          <button
            type="button"
            disabled={results.some(({ content }) => content.trim() === '')}
            onClick={() => give(results)}
          >
            {results.length === 1 ? 'Send the result' : 'Send the results'}
          </button>
        </div>
      )}
    </div>
  )
}

export function ToolResultsView({ of: { results } }: { of: ToolResults }) {
  return (
    <section class="question" aria-label="Results of tools">
      {results.map(({ id, name, content }) => (
        <Json key={id} text={content} title={`Result of ${name}`} />
      ))}
    </section>
  )
}
