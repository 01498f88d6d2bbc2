import { aud, brief, count } from '../../shared/format.ts'
import { KeysPage as Keys, type KeyMaker } from '../../shared/keys.tsx'
import { usePages } from '../../shared/pages.tsx'
import { Code, Copy } from '../../shared/parts.tsx'
import { RequestCode, VARIABLE } from '../../shared/request-code.tsx'
import { useData } from '../../shared/data.ts'
import { api } from '../api.ts'
import { firstRequest } from '../samples.ts'
import { may } from '../session.ts'

/** The keys of the workspace: what each is for, what it used this month, and when it was last used. */
export function KeysPage() {
  const pages = usePages((before: string | undefined, signal) =>
    api('keys', { query: { limit: 50, ...(before === undefined ? {} : { before }) }, signal }),
  )
  return (
    <Keys
      about={
        may('makeKey')
          ? 'Give each program a key of its own, so that you see what it uses and can revoke it alone.'
          : 'The keys of the programs that use this workspace. Its administrators create and change them.'
      }
      pages={pages}
      mark={(key) => (key.is_current ? <span class="chip accent">this session</span> : null)}
      columns={[
        { title: 'Requests this month', isNumber: true, cell: ({ requests }) => count(requests) },
        { title: 'Tokens', isNumber: true, cell: (key) => brief(key.input_tokens + key.output_tokens) },
        { title: 'Cost', isNumber: true, cell: ({ amount }) => aud(amount) },
      ]}
      mayChange={may('makeKey')}
      create={keyMaker}
      change={async ({ id }, body) => void (await api('changeKey', { path: { id }, body }))}
      revoke={{
        act: async ({ id }) => void (await api('endKey', { path: { id } })),
        warning: (key) => (key.is_current ? 'You signed in with this key, so you will be signed out.' : ''),
      }}
    />
  )
}

export const keyMaker: KeyMaker = {
  make: async (body) => (await api('makeKey', { body })).key,
  sample: (key) => <FirstCall of={key} />,
}

/** The key in the variable that all code here reads, and a first request, both ready to paste. */
function FirstCall({ of: key }: { of: string }) {
  const models = useData(async (signal) => (await api('models', { signal })).data)
  const model = models.state === 'ready' ? models.data[0] : undefined
  if (!model) return null
  const setVariable = `export ${VARIABLE}=${key}`
  return (
    <section class="stack tight" aria-labelledby="first-call">
      <div class="row apart">
        <h3 id="first-call">Try it in a terminal</h3>
        <Copy text={setVariable} title="Copy the line" />
      </div>
      <Code text={setVariable} label="Sets the key" />
      <RequestCode {...firstRequest(model)} />
    </section>
  )
}
