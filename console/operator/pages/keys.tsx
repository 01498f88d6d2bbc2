import { useState } from 'preact/hooks'
import type { Failure } from '../../shared/client.ts'
import { useData } from '../../shared/data.ts'
import { ago, count, date } from '../../shared/format.ts'
import { Copy, Dialog, Empty, Field, PageHead, Ready, State, Table } from '../../shared/parts.tsx'
import { api, type Answer, type Key } from '../api.ts'

/** The keys of all workspaces. */

const SHOWN = 200

export function KeysPage() {
  const loaded = useData((signal) => api('listKeys', { query: { limit: 1000 }, signal }))
  const [search, setSearch] = useState('')
  const [question, setQuestion] = useState<'create' | Key>()
  const close = (): void => {
    setQuestion(undefined)
    loaded.reload()
  }
  const fits = ({ id, name, workspace }: Key): boolean =>
    `${id} ${name ?? ''} ${workspace}`.toLowerCase().includes(search.toLowerCase())
  return (
    <>
      <PageHead title="Keys" about="The keys themselves are stored nowhere.">
        <button type="button" class="primary" onClick={() => setQuestion('create')}>
          Create a key
        </button>
      </PageHead>
      <Ready of={loaded}>
        {({ data }) => {
          const shown = data.filter(fits).slice(0, SHOWN)
          return (
            <>
              <div class="row">
                <input
                  type="search"
                  class="search"
                  aria-label="Search keys"
                  placeholder="Workspace, name or id"
                  value={search}
                  onInput={(event) => setSearch(event.currentTarget.value)}
                />
                <span class="small soft" role="status">
                  {count(shown.length)} of {count(data.length)}
                </span>
              </div>
              {shown.length === 0 ? (
                <Empty title="No key fits" />
              ) : (
                <Table caption="Keys" rows={shown} keyOf={({ id }) => id} columns={columns(setQuestion)} />
              )}
            </>
          )
        }}
      </Ready>
      {question === 'create' ? <CreateKey close={close} /> : null}
      {question !== undefined && question !== 'create' ? <RevokeKey of={question} close={close} /> : null}
    </>
  )
}

const columns = (ask: (key: Key) => void) => [
  {
    title: 'Key',
    cell: ({ id, name }: Key) => (
      <>
        {name ?? <span class="soft">no name</span>}
        <br />
        <code class="small soft">{id}</code>
      </>
    ),
  },
  {
    title: 'Workspace',
    cell: ({ workspace }: Key) => <a href={`/console/workspaces/${encodeURIComponent(workspace)}`}>{workspace}</a>,
  },
  {
    title: 'State',
    cell: ({ revoked, expires_at: expires }: Key) =>
      revoked === null ? (
        <State is="good">{expires === null ? 'Valid' : `Until ${date(Date.parse(expires) - 1)}`}</State>
      ) : (
        <State is="idle">Revoked {date(revoked)}</State>
      ),
  },
  { title: 'Last used', cell: (key: Key) => ago(key.last_used_at) },
  { title: 'Created', cell: ({ created }: Key) => date(created) },
  {
    title: 'Action',
    cell: (key: Key) =>
      key.revoked === null ? (
        <button type="button" class="plain" aria-label={`Revoke ${key.name ?? key.id}`} onClick={() => ask(key)}>
          Revoke
        </button>
      ) : null,
  },
]

function CreateKey({ close }: { close: () => void }) {
  const workspaces = useData((signal) => api('listWorkspaces', { signal }))
  const [workspace, setWorkspace] = useState('')
  const [name, setName] = useState('')
  const [made, setMade] = useState<Answer<'createKey'>>()
  const [problem, setProblem] = useState<string>()
  async function create(): Promise<void> {
    try {
      setMade(await api('createKey', { body: { workspace, name } }))
    } catch (error) {
      setProblem((error as Failure).message)
    }
  }
  if (made) {
    return (
      <Dialog title={`A key of ${made.workspace}`} close={close}>
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
        <Field label="Workspace">
          <select required value={workspace} onChange={(event) => setWorkspace(event.currentTarget.value)}>
            <option value="">Choose …</option>
            {workspaces.state === 'ready'
              ? workspaces.data.data.map((it) => (
                  <option key={it.id} value={it.name}>
                    {it.name}
                  </option>
                ))
              : null}
          </select>
        </Field>
        <Field label="What is it for?">
          <input required maxLength={100} value={name} onInput={(event) => setName(event.currentTarget.value)} />
        </Field>
        {problem === undefined ? null : (
          <div class="notice bad" role="alert">
            {problem}
          </div>
        )}
        <div class="row">
          <button type="submit" class="primary">
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
      await api('revokeKey', { path: { id: key.id } })
      close()
    } catch (error) {
      setProblem((error as Failure).message)
    }
  }
  return (
    <Dialog title={`Revoke ${key.name ?? key.id} of ${key.workspace}?`} close={close}>
      <p>Programs that use this key are refused from now on. This cannot be undone.</p>
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
