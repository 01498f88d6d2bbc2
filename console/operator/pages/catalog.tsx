import { useState } from 'preact/hooks'
import { Problem, useAction } from '../../shared/action.tsx'
import { useData } from '../../shared/data.ts'
import { Empty, PageHead, Ready, State, Table } from '../../shared/parts.tsx'
import { api, type Answer } from '../api.ts'
import { May } from '../session.tsx'
import { modelPath } from '../paths.ts'

/** What the catalog file would change, before it is applied. */

type Change = Answer<'previewCatalog'>['changes'][number]

export function CatalogPage() {
  const preview = useData((signal) => api('previewCatalog', { signal }))
  const [notice, setNotice] = useState<string>()
  const action = useAction()
  const take = (force: boolean): Promise<boolean> =>
    action.run(async () => {
      const { models } = await api('reloadCatalog', { query: force ? { force: 'true' } : {} })
      setNotice(`The catalog is in force: ${models === 1 ? '1 model' : `${models} models`}.`)
      preview.reload()
    })
  return (
    <>
      <PageHead
        title="Catalog"
        about={
          <>
            What the file would change in the catalog in force.
            {preview.state === 'ready' ? (
              <span class="wrap"> {preview.data.file ?? 'The catalog is built in.'}</span>
            ) : null}
          </>
        }
      >
        <button type="button" onClick={preview.reload}>
          Check again
        </button>
      </PageHead>
      <div role="status">{notice === undefined ? null : <div class="notice">{notice}</div>}</div>
      <Problem of={action} />
      <Ready of={preview}>
        {({ mistakes, needs_restart: pending, losses, changes }) => (
          <>
            {pending.length === 0 ? null : (
              <div class="notice warn">
                <strong>
                  {hasMoved(pending)
                    ? 'Restart the service to take the catalog that weir.yaml names now'
                    : 'Restart the service to take these settings'}
                </strong>
                {pending.map(({ key, value }) => (
                  <div key={key}>
                    <code>{key}</code> is {value} in the file.
                  </div>
                ))}
              </div>
            )}
            {mistakes.map((mistake) => (
              <div key={mistake} class="notice bad">
                {mistake}
              </div>
            ))}
            {losses.map((loss) => (
              <div key={loss} class="notice warn">
                <strong>Something would be lost</strong>
                {loss}
              </div>
            ))}
            {mistakes.length > 0 || (changes.length === 0 && hasMoved(pending)) ? null : changes.length === 0 ? (
              <Empty title="Nothing would change">The file and the catalog in force are the same.</Empty>
            ) : (
              <>
                <Table caption="Changes" rows={changes.flatMap(rowsOf)} keyOf={({ key }) => key} columns={columns} />
                <May call="reloadCatalog">
                  <div class="row">
                    <button type="button" class="primary" disabled={losses.length > 0} onClick={() => void take(false)}>
                      Take the catalog
                    </button>
                    {losses.length > 0 ? (
                      <button type="button" class="danger" onClick={() => void take(true)}>
                        Take it with the losses
                      </button>
                    ) : null}
                  </div>
                </May>
              </>
            )}
          </>
        )}
      </Ready>
    </>
  )
}

/** The models are in another file than those in force. */
const hasMoved = (pending: Answer<'previewCatalog'>['needs_restart']): boolean =>
  pending.some(({ key }) => key === 'catalog')

interface Row {
  readonly key: string
  readonly model: string
  readonly change: Change['change']
  readonly field: string
  readonly before: string | null
  readonly after: string | null
}

function rowsOf({ model, change, fields }: Change): readonly Row[] {
  if (change === 'removed') return [{ key: model, model, change, field: 'the whole model', before: null, after: null }]
  return fields.map((it) => ({ key: `${model} ${it.field}`, model, change, ...it }))
}

const columns = [
  {
    title: 'Model',
    cell: ({ model, change }: Row) => (change === 'added' ? model : <a href={modelPath(model)}>{model}</a>),
  },
  {
    title: 'Change',
    cell: ({ change }: Row) => (
      <State is={change === 'removed' ? 'bad' : change === 'added' ? 'good' : 'warn'}>{change}</State>
    ),
  },
  { title: 'Field', cell: ({ field }: Row) => <code class="small">{field}</code> },
  { title: 'Before', cell: ({ before }: Row) => <span class="name-cell">{before ?? '–'}</span> },
  { title: 'After', cell: ({ after }: Row) => <span class="name-cell">{after ?? '–'}</span> },
]
