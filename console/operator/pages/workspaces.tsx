import { useState } from 'preact/hooks'
import type { Failure } from '../../shared/client.ts'
import { useData } from '../../shared/data.ts'
import { count, date } from '../../shared/format.ts'
import { Dialog, Empty, Field, PageHead, Ready, Table } from '../../shared/parts.tsx'
import { api } from '../api.ts'

/** All workspaces. */
export function WorkspacesPage() {
  const loaded = useData((signal) => api('listWorkspaces', { signal }))
  const [search, setSearch] = useState('')
  const [isCreating, setCreating] = useState(false)
  return (
    <>
      <PageHead title="Workspaces" about="Keys, limits, prices and invoices belong to a workspace.">
        <button type="button" class="primary" onClick={() => setCreating(true)}>
          Create a workspace
        </button>
      </PageHead>
      <Ready of={loaded}>
        {({ data }) => {
          const shown = data.filter(({ name }) => name.toLowerCase().includes(search.toLowerCase())).slice(0, 200)
          return (
            <>
              <div class="row">
                <input
                  type="search"
                  class="search"
                  aria-label="Search workspaces"
                  placeholder="Search by name"
                  value={search}
                  onInput={(event) => setSearch(event.currentTarget.value)}
                />
                <span class="small soft" role="status">
                  {count(shown.length)} of {count(data.length)}
                </span>
              </div>
              {shown.length === 0 ? (
                <Empty title="No workspace fits" />
              ) : (
                <Table
                  caption="Workspaces"
                  rows={shown}
                  keyOf={({ id }) => id}
                  columns={[
                    {
                      title: 'Workspace',
                      cell: ({ name }) => <a href={`/console/workspaces/${encodeURIComponent(name)}`}>{name}</a>,
                    },
                    { title: 'Requests / minute', isNumber: true, cell: (it) => count(it.requests_per_minute) },
                    {
                      title: 'Spend limit / month',
                      isNumber: true,
                      cell: (it) =>
                        it.spend_limit === null ? 'none' : `A$${it.spend_limit} ${it.spend_limit_kind ?? ''}`,
                    },
                    { title: 'Buyer', cell: ({ buyer }) => buyer.name ?? '–' },
                    { title: 'Created', cell: ({ created }) => date(created) },
                  ]}
                />
              )}
            </>
          )
        }}
      </Ready>
      {isCreating ? (
        <CreateWorkspace
          close={() => {
            setCreating(false)
            loaded.reload()
          }}
        />
      ) : null}
    </>
  )
}

function CreateWorkspace({ close }: { close: () => void }) {
  const [name, setName] = useState('')
  const [problem, setProblem] = useState<string>()
  async function create(): Promise<void> {
    try {
      await api('createWorkspace', { body: { name } })
      close()
    } catch (error) {
      setProblem((error as Failure).message)
    }
  }
  return (
    <Dialog title="Create a workspace" close={close}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault()
          void create()
        }}
      >
        <Field label="Name">
          <input
            required
            maxLength={64}
            autofocus
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
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
