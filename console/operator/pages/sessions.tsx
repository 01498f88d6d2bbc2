import { Paged, usePages } from '../../shared/pages.tsx'
import { PageHead } from '../../shared/parts.tsx'
import { SessionTable } from '../../shared/sessions.tsx'
import { api } from '../api.ts'
import { may } from '../session.tsx'

/** Who is signed in to either console. */
export function SessionsPage() {
  const pages = usePages((before: string | undefined, signal) =>
    api('listSessions', { query: { limit: 50, ...(before === undefined ? {} : { before }) }, signal }),
  )
  const end = async ({ id }: { readonly id: string }): Promise<void> => {
    await api('endSession', { path: { id } })
    pages.reload()
  }
  return (
    <>
      <PageHead title="Sessions" about="Who is signed in to this console and to those of workspaces." />
      <Paged of={pages}>
        {(sessions) => <SessionTable rows={sessions} hasPeople end={may('endSession') ? end : undefined} />}
      </Paged>
    </>
  )
}
