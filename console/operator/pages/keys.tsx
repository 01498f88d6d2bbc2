import { useState } from 'preact/hooks'
import { date } from '../../shared/format.ts'
import { KeysPage as Keys } from '../../shared/keys.tsx'
import { usePages } from '../../shared/pages.tsx'
import { api } from '../api.ts'
import { may } from '../session.tsx'
import { WorkspaceField } from '../workspace-field.tsx'

/** The keys of all workspaces, or of one. */
export function KeysPage() {
  const [filter, setFilter] = useState('')
  const [onlyValid, setOnlyValid] = useState(false)
  const [workspace, setWorkspace] = useState('')
  const pages = usePages(
    (before: string | undefined, signal) =>
      api('listKeys', {
        query: {
          limit: 50,
          ...(filter === '' ? {} : { workspace: filter }),
          ...(onlyValid ? { state: 'valid' as const } : {}),
          ...(before === undefined ? {} : { before }),
        },
        signal,
      }),
    [filter, onlyValid],
  )
  return (
    <Keys
      about="Weir stores a hash of each key, not the key."
      pages={pages}
      filters={<Filters choose={setFilter} onlyValid={onlyValid} setOnlyValid={setOnlyValid} />}
      columns={[
        {
          title: 'Workspace',
          cell: ({ workspace: name }) => <a href={`/console/workspaces/${encodeURIComponent(name)}`}>{name}</a>,
        },
        { title: 'Created', cell: ({ created }) => date(created) },
      ]}
      mayChange={may('changeKey')}
      create={{
        fields: <WorkspaceField value={workspace} choose={setWorkspace} />,
        isReady: workspace.trim() !== '',
        make: async (key) => (await api('createKey', { body: { workspace, ...key } })).key,
      }}
      change={async ({ id }, body) => void (await api('changeKey', { path: { id }, body }))}
      revoke={{
        act: async ({ id }) => void (await api('revokeKey', { path: { id } })),
        warning: ({ workspace: name }) => `It belongs to ${name}.`,
      }}
    />
  )
}

function Filters({
  choose,
  onlyValid,
  setOnlyValid,
}: {
  choose: (workspace: string) => void
  onlyValid: boolean
  setOnlyValid: (is: boolean) => void
}) {
  const [typed, setTyped] = useState('')
  return (
    <form
      class="row end"
      role="search"
      onSubmit={(event) => {
        event.preventDefault()
        choose(typed)
      }}
    >
      <WorkspaceField label="Only of workspace" isRequired={false} value={typed} choose={setTyped} />
      <button type="submit">Show</button>
      <label class="inline">
        <input type="checkbox" checked={onlyValid} onChange={(event) => setOnlyValid(event.currentTarget.checked)} />
        Only valid keys
      </label>
    </form>
  )
}
