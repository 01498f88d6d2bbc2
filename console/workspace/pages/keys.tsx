import { aud, brief, count } from '../../shared/format.ts'
import { KeysPage as Keys } from '../../shared/keys.tsx'
import { usePages } from '../../shared/pages.tsx'
import { api } from '../api.ts'

/** The keys of the workspace: what each is for, what it used this month, and when it was last used. */
export function KeysPage() {
  const pages = usePages((before: string | undefined, signal) =>
    api('keys', { query: { limit: 50, ...(before === undefined ? {} : { before }) }, signal }),
  )
  return (
    <Keys
      about="Give each program a key of its own, so that you see what it uses and can revoke it alone."
      pages={pages}
      mark={(key) => (key.is_current ? <span class="chip accent">this session</span> : null)}
      columns={[
        { title: 'Requests this month', isNumber: true, cell: ({ requests }) => count(requests) },
        { title: 'Tokens', isNumber: true, cell: (key) => brief(key.input_tokens + key.output_tokens) },
        { title: 'Cost', isNumber: true, cell: ({ amount }) => aud(amount) },
      ]}
      create={{ make: async (body) => (await api('makeKey', { body })).key }}
      revoke={{
        act: async ({ id }) => void (await api('endKey', { path: { id } })),
        warning: (key) => (key.is_current ? 'You signed in with this key, so you will be signed out.' : ''),
      }}
    />
  )
}
