import { useState } from 'preact/hooks'
import type { Failure } from '../../shared/client.ts'
import { useData } from '../../shared/data.ts'
import { ago, aud, brief, count, date } from '../../shared/format.ts'
import { Copy, Dialog, Empty, Field, PageHead, Ready, State, Table } from '../../shared/parts.tsx'
import { api, type Answer } from '../api.ts'

/** The keys of the workspace: what each is for, what it used this month, and when it was last used. */

type Key = Answer<'keys'>['data'][number]
type Question = { readonly kind: 'create' } | { readonly kind: 'revoke'; readonly key: Key }

export function KeysPage() {
  const loaded = useData((signal) => api('keys', { signal }))
  const [question, setQuestion] = useState<Question>()
  const close = (): void => {
    setQuestion(undefined)
    loaded.reload()
  }
  return (
    <>
      <PageHead
        title="Keys"
        about="Give each program a key of its own, so that you see what it uses and can revoke it alone."
      >
        <button type="button" class="primary" onClick={() => setQuestion({ kind: 'create' })}>
          Create a key
        </button>
      </PageHead>
      <Ready of={loaded}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="There are no keys yet">Create one to call the API.</Empty>
          ) : (
            <Table
              caption="Keys"
              rows={data}
              keyOf={({ id }) => id}
              columns={[
                {
                  title: 'Key',
                  cell: (key) => (
                    <>
                      {key.name ?? <span class="soft">no name</span>}
                      {key.is_current ? <span class="chip accent beside">this session</span> : null}
                      <br />
                      <code class="small soft">{key.id}</code>
                    </>
                  ),
                },
                { title: 'State', cell: (key) => <KeyState of={key} /> },
                { title: 'Last used', cell: (key) => ago(key.last_used_at) },
                { title: 'Requests this month', isNumber: true, cell: ({ requests }) => count(requests) },
                { title: 'Tokens', isNumber: true, cell: (key) => brief(key.input_tokens + key.output_tokens) },
                { title: 'Cost', isNumber: true, cell: ({ amount }) => aud(amount) },
                {
                  title: 'Action',
                  cell: (key) =>
                    key.revoked === null ? (
                      <button
                        type="button"
                        class="plain"
                        aria-label={`Revoke ${key.name ?? key.id}`}
                        onClick={() => setQuestion({ kind: 'revoke', key })}
                      >
                        Revoke
                      </button>
                    ) : null,
                },
              ]}
            />
          )
        }
      </Ready>
      {question?.kind === 'create' ? <CreateKey close={close} /> : null}
      {question?.kind === 'revoke' ? <RevokeKey of={question.key} close={close} /> : null}
    </>
  )
}

function KeyState({ of: { revoked, expires_at: expires } }: { of: Key }) {
  if (revoked !== null) return <State is="idle">Revoked {date(revoked)}</State>
  if (expires === null) return <State is="good">Valid</State>
  return Date.parse(expires) <= Date.now() ? (
    <State is="idle">Expired {date(expires)}</State>
  ) : (
    <State is="good">Until {date(Date.parse(expires) - 1)}</State>
  )
}

function CreateKey({ close }: { close: () => void }) {
  const [name, setName] = useState('')
  const [expires, setExpires] = useState('')
  const [made, setMade] = useState<Answer<'makeKey'>>()
  const [problem, setProblem] = useState<string>()
  async function create(): Promise<void> {
    try {
      setMade(await api('makeKey', { body: { name, ...(expires === '' ? {} : { expires_at: expires }) } }))
    } catch (error) {
      setProblem((error as Failure).message)
    }
  }
  if (made) {
    return (
      <Dialog title={`The key for ${made.name}`} close={close}>
        <p>Copy it now. It is shown only here, and stored nowhere.</p>
        <code class="wrap secret">{made.key}</code>
        <div class="row">
          <Copy text={made.key} title="Copy the key" />
          <button type="button" class="primary" onClick={close}>
            Done
          </button>
        </div>
      </Dialog>
    )
  }
  return (
    <Dialog title="Create a key" close={close}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault()
          void create()
        }}
      >
        <Field label="What is it for?">
          <input
            required
            maxLength={100}
            autofocus
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </Field>
        <Field label="Last day" hint="In Sydney. Empty: the key does not expire.">
          <input type="date" value={expires} onInput={(event) => setExpires(event.currentTarget.value)} />
        </Field>
        {problem === undefined ? null : (
          <div class="notice bad" role="alert">
            {problem}
          </div>
        )}
        <div class="row">
          <button type="submit" class="primary" disabled={name.trim() === ''}>
            Create
          </button>
          <button type="button" onClick={close}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  )
}

function RevokeKey({ of: key, close }: { of: Key; close: () => void }) {
  const [problem, setProblem] = useState<string>()
  async function revoke(): Promise<void> {
    try {
      await api('endKey', { path: { id: key.id } })
      close()
    } catch (error) {
      setProblem((error as Failure).message)
    }
  }
  return (
    <Dialog title={`Revoke ${key.name ?? key.id}?`} close={close}>
      <p>
        Programs that use this key are refused from now on. This cannot be undone.
        {key.is_current ? ' You signed in with this key, so you will be signed out.' : ''}
      </p>
      {problem === undefined ? null : (
        <div class="notice bad" role="alert">
          {problem}
        </div>
      )}
      <div class="row">
        <button type="button" class="danger" onClick={() => void revoke()}>
          Revoke
        </button>
        <button type="button" onClick={close}>
          Cancel
        </button>
      </div>
    </Dialog>
  )
}
