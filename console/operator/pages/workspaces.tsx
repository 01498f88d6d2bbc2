import { useState } from 'preact/hooks'
import { Problem, useAction } from '../../shared/action.tsx'
import { count, date, exactAud } from '../../shared/format.ts'
import { Field, Form } from '../../shared/form.tsx'
import { Icon } from '../../shared/icon.tsx'
import { organizationIcon, plusIcon } from '../../shared/icons.ts'
import { Paged, usePages } from '../../shared/pages.tsx'
import { Dialog, Empty, PageHead, Table } from '../../shared/parts.tsx'
import { api } from '../api.ts'
import { may, May } from '../session.tsx'

/** All workspaces. */
export function WorkspacesPage() {
  const [search, setSearch] = useState('')
  const [isCreating, setCreating] = useState(false)
  const pages = usePages(
    (before: string | undefined, signal) =>
      api('listWorkspaces', { query: { search, limit: 50, ...(before === undefined ? {} : { before }) }, signal }),
    [search],
  )
  return (
    <>
      <PageHead title="Workspaces" about="Keys, limits, prices and invoices belong to a workspace.">
        <May call="createWorkspace">
          <button type="button" class="primary" onClick={() => setCreating(true)}>
            <Icon of={plusIcon} />
            Create a workspace
          </button>
        </May>
      </PageHead>
      <div class="row">
        <input
          type="search"
          class="search"
          aria-label="Search workspaces"
          placeholder="Search by name"
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
      </div>
      <Paged of={pages}>
        {(workspaces) =>
          workspaces.length === 0 ? (
            <Empty icon={organizationIcon} title={search === '' ? 'There are no workspaces yet' : 'No workspace fits'}>
              {search === '' ? 'Keys, limits, prices and invoices belong to one.' : null}
              {search === '' && !may('createWorkspace') ? null : (
                <button type="button" onClick={() => (search === '' ? setCreating(true) : setSearch(''))}>
                  {search === '' ? 'Create the first workspace' : 'Show all workspaces'}
                </button>
              )}
            </Empty>
          ) : (
            <Table
              caption="Workspaces"
              rows={workspaces}
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
                    it.spend_limit === null ? 'none' : `${exactAud(it.spend_limit)} ${it.spend_limit_kind ?? ''}`,
                },
                { title: 'Buyer', cell: ({ buyer }) => buyer.name ?? '–' },
                { title: 'Created', cell: ({ created }) => date(created) },
              ]}
            />
          )
        }
      </Paged>
      {isCreating ? (
        <CreateWorkspace
          close={() => {
            setCreating(false)
            pages.reload()
          }}
        />
      ) : null}
    </>
  )
}

function CreateWorkspace({ close }: { close: () => void }) {
  const [name, setName] = useState('')
  const action = useAction()
  async function create(): Promise<void> {
    await api('createWorkspace', { body: { name } })
    close()
  }
  return (
    <Dialog title="Create a workspace" close={close}>
      <Form class="stack" action={action} submit={create}>
        <Field label="Name" hint="Letters, digits, spaces, “.”, “_” and “-”.">
          <input
            name="name"
            required
            maxLength={64}
            autofocus
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </Field>
        <Problem of={action} />
        <div class="row">
          <button type="submit" class="primary" disabled={name.trim() === '' || action.isRunning}>
            Create
          </button>
          <button type="button" onClick={close}>
            Cancel
          </button>
        </div>
      </Form>
    </Dialog>
  )
}
