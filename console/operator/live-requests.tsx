import { useState } from 'preact/hooks'
import { useData } from '../shared/data.ts'
import { Empty, Ready, Table } from '../shared/parts.tsx'
import { requestColumns } from '../shared/request-columns.tsx'
import { api, type Answer, type Sample } from './api.ts'
import { workspacePath } from './paths.ts'
import { WorkspaceField } from './workspace-field.tsx'

/** The requests of all workspaces as they are settled, or those of one workspace, of one model, or that failed. */

type Row = Answer<'listRequests'>['data'][number]
const SHOWN = 25

interface Filter {
  readonly workspace: string
  readonly model: string
  readonly onlyFailed: boolean
}

export function LiveRequests({ sample, models }: { sample: Sample | undefined; models: readonly string[] }) {
  const [{ workspace, model, onlyFailed }, setFilter] = useState<Filter>({
    workspace: '',
    model: '',
    onlyFailed: false,
  })
  const [isPaused, setPaused] = useState(false)
  const [pausedAt, setPausedAt] = useState(0)
  const loaded = useData(
    (signal) =>
      api('listRequests', {
        query: { limit: SHOWN, workspace, model, ...(onlyFailed ? { outcome: 'failed' as const } : {}) },
        signal,
      }),
    [isPaused ? pausedAt : (sample?.at ?? 0), workspace, model, onlyFailed],
  )
  const isFiltered = workspace !== '' || model !== '' || onlyFailed
  return (
    <section class="stack" aria-labelledby="live">
      <div class="row apart">
        <h2 id="live">Live requests</h2>
        <button
          type="button"
          aria-pressed={isPaused}
          onClick={() => {
            setPausedAt(sample?.at ?? 0)
            setPaused(!isPaused)
          }}
        >
          {isPaused ? 'Go on' : 'Pause'}
        </button>
      </div>
      <LiveFilter models={models} of={{ workspace, model, onlyFailed }} choose={setFilter} />
      <Ready of={loaded}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty title={isFiltered ? 'No such request among the newest' : 'There are no requests yet'}>
              They appear here when they are settled.
            </Empty>
          ) : (
            <Table caption="Live requests" rows={data} keyOf={({ request_id: id }) => id} columns={columns} />
          )
        }
      </Ready>
    </section>
  )
}

function LiveFilter({
  models,
  of: filter,
  choose,
}: {
  models: readonly string[]
  of: Filter
  choose: (filter: Filter) => void
}) {
  const [typed, setTyped] = useState('')
  return (
    <form
      class="row end"
      role="search"
      aria-label="Live requests"
      onSubmit={(event) => {
        event.preventDefault()
        choose({ ...filter, workspace: typed.trim() })
      }}
    >
      <WorkspaceField label="Only of workspace" isRequired={false} value={typed} choose={setTyped} />
      <button type="submit">Show</button>
      <label>
        Only of model
        <select
          value={filter.model}
          onInput={(event) => choose({ ...filter, model: event.currentTarget.value })}
          class="choice"
        >
          <option value="">All models</option>
          {models.map((model) => (
            <option key={model} value={model}>
              {model}
            </option>
          ))}
        </select>
      </label>
      <label class="inline">
        <input
          type="checkbox"
          checked={filter.onlyFailed}
          onChange={(event) => choose({ ...filter, onlyFailed: event.currentTarget.checked })}
        />
        Only those that failed
      </label>
    </form>
  )
}

const columns = requestColumns<Row>([
  {
    title: 'Workspace',
    cell: ({ workspace }) => (workspace === null ? '–' : <a href={workspacePath(workspace)}>{workspace}</a>),
  },
])
