import { useState } from 'preact/hooks'
import { Confirm } from '../../../shared/action.tsx'
import { useData } from '../../../shared/data.ts'
import { ago } from '../../../shared/format.ts'
import { Empty, Ready, Sheet } from '../../../shared/parts.tsx'
import { conversations } from './conversation.ts'

/** The conversations that this browser has kept. */
export function HistorySheet({
  current,
  open,
  close,
}: {
  current: string | undefined
  /** undefined: a new one. */
  open: (id: string | undefined) => void
  close: () => void
}) {
  const loaded = useData(() => conversations.list(), [conversations.changes.value])
  const [isClearing, setClearing] = useState(false)
  async function remove(id: string): Promise<void> {
    if (id === current) open(undefined)
    await conversations.remove(id)
  }
  return (
    <Sheet title="History" close={close}>
      <p class="small soft">
        Kept in this browser only, for this workspace: the last 100 conversations and at most 50 MB. The oldest are
        dropped first.
      </p>
      <Ready of={loaded}>
        {(entries) =>
          entries.length === 0 ? (
            <Empty title="No conversations yet">Send a message; this browser keeps the conversation.</Empty>
          ) : (
            <>
              <ul class="history">
                {entries.map(({ id, at, facts: { title } }) => (
                  <li key={id}>
                    <button
                      type="button"
                      class="plain"
                      aria-current={id === current ? 'true' : undefined}
                      onClick={() => {
                        open(id)
                        close()
                      }}
                    >
                      {title} <small class="soft">{ago(new Date(at).toISOString())}</small>
                    </button>
                    <button type="button" aria-label={`Delete ${title}`} onClick={() => void remove(id)}>
                      Delete
                    </button>
                  </li>
                ))}
              </ul>
              <div class="row">
                <button type="button" class="danger" onClick={() => setClearing(true)}>
                  Delete all
                </button>
              </div>
            </>
          )
        }
      </Ready>
      {isClearing ? (
        <Confirm
          title="Delete all conversations?"
          verb="Delete all"
          act={async () => {
            open(undefined)
            await conversations.clear()
          }}
          close={() => setClearing(false)}
        >
          <p>They are deleted from this browser and cannot be brought back.</p>
        </Confirm>
      ) : null}
    </Sheet>
  )
}
