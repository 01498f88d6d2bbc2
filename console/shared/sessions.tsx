import { useState } from 'preact/hooks'
import { Confirm } from './action.tsx'
import { peopleIcon } from './icons.ts'
import { Ago, Empty, Moment, Table, type Column } from './parts.tsx'

/** The list of sessions, which both consoles have. */

export interface SessionRow {
  readonly id: string
  readonly workspace: string | null
  readonly who: string
  readonly roles: readonly string[]
  readonly started: string
  readonly last_used: string
  readonly expires_at: string
  readonly address: string | null
  /** Whether it is the one of this browser. */
  readonly is_current?: boolean
}

export function SessionTable({
  rows,
  hasPeople,
  end,
}: {
  rows: readonly SessionRow[]
  /** Whether the sessions are those of several people. */
  hasPeople: boolean
  /** undefined: the person may not end them. */
  end: ((session: SessionRow) => Promise<void>) | undefined
}) {
  const [ending, setEnding] = useState<SessionRow>()
  const who: Column<SessionRow> = {
    title: 'Who',
    cell: ({ id, who: name }) => (
      <>
        <span class="name-cell">{name}</span>
        <br />
        <code class="small soft">{id}</code>
      </>
    ),
  }
  const action: Column<SessionRow> = {
    title: 'Action',
    isAction: true,
    cell: (session) =>
      session.is_current ? (
        <span class="chip accent">this session</span>
      ) : (
        <button
          type="button"
          class="plain"
          aria-label={`End the session ${session.id} of ${session.who}`}
          onClick={() => setEnding(session)}
        >
          End
        </button>
      ),
  }
  return (
    <>
      {rows.length === 0 ? (
        <Empty icon={peopleIcon} title="No one is signed in" />
      ) : (
        <Table
          caption="Sessions"
          rows={rows}
          keyOf={({ id }) => id}
          columns={[
            ...(hasPeople ? [who] : []),
            {
              title: 'Console',
              cell: ({ workspace, roles }) => (
                <>
                  {workspace ?? 'Operator'}
                  <br />
                  <span class="small soft">{roles.map((role) => role.replace('_', ' ')).join(', ')}</span>
                </>
              ),
            },
            { title: 'Since', cell: ({ started }) => <Ago at={started} /> },
            { title: 'Last used', cell: ({ last_used: at }) => <Ago at={at} /> },
            { title: 'Ends', cell: ({ expires_at: at }) => <Moment at={at} /> },
            { title: 'Address', cell: ({ address }) => address ?? '–' },
            ...(end ? [action] : []),
          ]}
        />
      )}
      {ending && end ? (
        <Confirm
          title="End the session?"
          verb="End the session"
          act={() => end(ending)}
          close={() => setEnding(undefined)}
        >
          <p>{ending.who} is signed out at once, and can sign in again. Requests that are running finish.</p>
        </Confirm>
      ) : null}
    </>
  )
}
