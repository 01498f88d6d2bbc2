import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { useData, type Loaded } from './data.ts'
import { Ready } from './parts.tsx'

/** A list that the service sends page by page. `next` asks for the page after this one. */
export interface Page<Row, Cursor> {
  readonly data: readonly Row[]
  readonly next: Cursor | null
}

export interface Pages<Row, Cursor> {
  readonly loaded: Loaded<Page<Row, Cursor>> & { readonly reload: () => void }
  readonly reload: () => void
  /** Undefined on the first page. */
  readonly back: (() => void) | undefined
  readonly forward: (cursor: Cursor) => void
}

/** Starts again at the first page when a dependency changes, such as a filter. */
export function usePages<Row, Cursor>(
  load: (cursor: Cursor | undefined, signal: AbortSignal) => Promise<Page<Row, Cursor>>,
  dependencies: readonly unknown[] = [],
): Pages<Row, Cursor> {
  const filter = JSON.stringify(dependencies)
  const [place, setPlace] = useState<{ readonly filter: string; readonly cursors: readonly Cursor[] }>({
    filter,
    cursors: [],
  })
  const cursors = place.filter === filter ? place.cursors : []
  const cursor = cursors.at(-1)
  const loaded = useData((signal) => load(cursor, signal), [cursor, filter])
  return {
    loaded,
    reload: loaded.reload,
    back: cursors.length === 0 ? undefined : () => setPlace({ filter, cursors: cursors.slice(0, -1) }),
    forward: (next) => setPlace({ filter, cursors: [...cursors, next] }),
  }
}

/** One page, and links to the others if there are any. */
export function Paged<Row, Cursor>({
  of: { loaded, back, forward },
  titles: [backward, onward] = ['Newer', 'Older'],
  children,
}: {
  of: Pages<Row, Cursor>
  titles?: readonly [backward: string, onward: string]
  children: (rows: readonly Row[], isLast: boolean) => ComponentChildren
}) {
  return (
    <Ready of={loaded}>
      {({ data, next }) => (
        <>
          {children(data, next === null)}
          {back === undefined && next === null ? null : (
            <div class="row">
              <button type="button" disabled={back === undefined} onClick={back}>
                {backward}
              </button>
              <button type="button" disabled={next === null} onClick={() => next !== null && forward(next)}>
                {onward}
              </button>
            </div>
          )}
        </>
      )}
    </Ready>
  )
}
