import { useData } from '../../shared/data.ts'
import { PageHead, Ready } from '../../shared/parts.tsx'
import { SessionTable } from '../../shared/sessions.tsx'
import { api } from '../api.ts'
import { session } from '../session.ts'

/** The sessions of the same person, or of the same key. */
export function SessionsPage() {
  const loaded = useData(async (signal) => (await api('ownSessions', { signal })).data)
  const end = async ({ id }: { readonly id: string }): Promise<void> => {
    await api('endOwnSession', { path: { id } })
    loaded.reload()
  }
  const whose = session.value?.person ? 'you are' : session.value?.key_id ? 'this key is' : 'this link was'
  return (
    <>
      <PageHead title="Sessions" about={`The browsers where ${whose} signed in.`} />
      <Ready of={loaded}>{(sessions) => <SessionTable rows={sessions} hasPeople={false} end={end} />}</Ready>
    </>
  )
}
