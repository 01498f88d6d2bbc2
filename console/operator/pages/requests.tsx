import { useData } from '../../shared/data.ts'
import { Field } from '../../shared/form.tsx'
import { PageHead } from '../../shared/parts.tsx'
import { REFUSED_SHOWN, RefusedSection, type RefusedGroup, type RefusedRequest } from '../../shared/refused.tsx'
import { FoundRequests, givenOf, refusedQuery, SearchForm, useSearch } from '../../shared/request-finder.tsx'
import { RequestPage as Page, RequestSearch } from '../../shared/request.tsx'
import { api } from '../api.ts'
import { workspacePath } from '../paths.ts'
import { WorkspaceField } from '../workspace-field.tsx'

/** Requests of all workspaces or one, settled and refused, and one by its id. */

/** A dedicated lane has the name of its workspace after that of the model. */
const modelOf = ({ lane }: { lane: string }): string => lane.split('@', 1)[0] ?? lane

export function RequestsPage() {
  const [search, show] = useSearch()
  const models = useData(async (signal) => (await api('listQueues', { signal })).lanes.map(modelOf))
  const given = givenOf(search)
  return (
    <>
      <PageHead title="Requests" about="Find a request by its id, or by who sent it, its model, outcome and time.">
        <RequestSearch />
      </PageHead>
      <SearchForm
        key={JSON.stringify(search)}
        search={search}
        show={show}
        models={models.state === 'ready' ? [...new Set(models.data)] : []}
        whose={(bound) => {
          const workspace = bound('workspace')
          const { name, value, choose } = bound('key')
          return (
            <>
              <WorkspaceField isRequired={false} value={workspace.value} choose={workspace.choose} />
              <Field label="Key id">
                <input
                  name={name}
                  value={value}
                  maxLength={100}
                  spellcheck={false}
                  autocomplete="off"
                  onInput={({ currentTarget }) => choose(currentTarget.value)}
                />
              </Field>
            </>
          )
        }}
      />
      <section class="stack" aria-labelledby="settled">
        <h2 id="settled">Settled requests</h2>
        <FoundRequests
          search={search}
          load={(before, signal) =>
            api('listRequests', { query: { limit: 25, ...given, ...(before === undefined ? {} : { before }) }, signal })
          }
          whose={{ title: 'Sent by', cell: ({ workspace, key_id }) => <Sender of={{ workspace, key_id }} /> }}
        />
      </section>
      <RefusedSection
        load={(before, signal) =>
          api('listRefused', {
            query: {
              limit: REFUSED_SHOWN,
              ...refusedQuery(search),
              ...(search.workspace === '' ? {} : { workspace: search.workspace }),
              ...(before === undefined ? {} : { before }),
            },
            signal,
          })
        }
        dependencies={[search]}
        whose={{ title: 'Sent by', cell: (it) => <Sender of={it} /> }}
      />
    </>
  )
}

export function RequestPage() {
  return (
    <Page
      source={{
        row: (id, signal) => api('getUsage', { path: { request_id: id }, signal }),
        refusal: async (id, signal) => (await api('listRefused', { query: { request_id: id }, signal })).newest[0],
      }}
      linkTo={{ workspace: workspacePath }}
    />
  )
}

type Sent = Pick<RefusedGroup | RefusedRequest, 'key_id'> & { workspace: string | null }

function Sender({ of: { workspace, key_id } }: { of: Sent }) {
  if (workspace === null) return <span class="soft">no valid key</span>
  return (
    <>
      <a href={workspacePath(workspace)}>{workspace}</a>
      <div class="small soft">
        {key_id === null ? (
          'other keys'
        ) : (
          <code class="short-id" title={key_id}>
            {key_id}
          </code>
        )}
      </div>
    </>
  )
}
