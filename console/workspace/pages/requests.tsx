import { useData } from '../../shared/data.ts'
import { Field } from '../../shared/form.tsx'
import { PageHead } from '../../shared/parts.tsx'
import { REFUSED_SHOWN, RefusedSection } from '../../shared/refused.tsx'
import { FoundRequests, givenOf, refusedQuery, SearchForm, useSearch } from '../../shared/request-finder.tsx'
import { RequestPage as Page, RequestSearch } from '../../shared/request.tsx'
import { api } from '../api.ts'
import { modelPath } from '../model-facts.ts'

/** The requests of the workspace, settled and refused, and one by its id. */
export function RequestsPage() {
  const [search, show] = useSearch()
  const known = useData(async (signal) => {
    const [keys, models] = await Promise.all([
      api('keys', { query: { limit: 500 }, signal }),
      api('models', { signal }),
    ])
    return { keys: keys.data, models: models.data.map(({ id }) => id) }
  })
  const { keys, models } = known.state === 'ready' ? known.data : { keys: [], models: [] }
  const nameOf = (id: string): string => {
    const key = keys.find((it) => it.id === id)
    return key?.name ?? key?.redacted ?? id
  }
  const { workspace: _, ...given } = givenOf(search)
  return (
    <>
      <PageHead title="Requests" about="Find a request by its id, or by its key, model, outcome and time.">
        <RequestSearch />
      </PageHead>
      <SearchForm
        key={JSON.stringify(search)}
        search={search}
        show={show}
        models={models}
        whose={(bound) => {
          const { name, value, choose } = bound('key')
          return (
            <Field label="Key">
              <select name={name} value={value} onInput={({ currentTarget }) => choose(currentTarget.value)}>
                <option value="">any</option>
                {keys.map((it) => (
                  <option key={it.id} value={it.id}>
                    {it.name ?? it.redacted}
                  </option>
                ))}
              </select>
            </Field>
          )
        }}
      />
      <FoundRequests
        search={search}
        load={(before, signal) =>
          api('requests', { query: { limit: 25, ...given, ...(before === undefined ? {} : { before }) }, signal })
        }
        whose={{ title: 'Key', cell: (row) => <span class="short-cell">{nameOf(row.key_id)}</span> }}
      />
      <RefusedSection
        load={(before, signal) =>
          api('usageRefused', {
            query: { limit: REFUSED_SHOWN, ...refusedQuery(search), ...(before === undefined ? {} : { before }) },
            signal,
          })
        }
        dependencies={[search]}
        whose={{
          title: 'Key',
          cell: ({ key_id: id }) => <span class="short-cell">{id === null ? 'other keys' : nameOf(id)}</span>,
        }}
      />
    </>
  )
}

export function RequestPage() {
  return (
    <Page
      source={{
        row: (id, signal) => api('usageRequestId', { path: { request_id: id }, signal }),
        refusal: async (id, signal) => (await api('usageRefused', { query: { request_id: id }, signal })).newest[0],
      }}
      linkTo={{ model: modelPath }}
    />
  )
}
