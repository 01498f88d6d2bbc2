import { useRoute } from 'preact-iso/router'
import { batchColumns, BatchView, CancelBatch, isActive } from '../../shared/batch.tsx'
import { useData, useReloading } from '../../shared/data.ts'
import { tasklistIcon } from '../../shared/icons.ts'
import { Paged, usePages } from '../../shared/pages.tsx'
import { Empty, PageHead, Ready, Table } from '../../shared/parts.tsx'
import { api, type Answer } from '../api.ts'
import { workspacePath } from '../paths.ts'
import { May } from '../session.tsx'

/** The batches of all workspaces. */
export function BatchesPage() {
  const pages = usePages((before: string | undefined, signal) =>
    api('listBatches', { query: before === undefined ? {} : { before }, signal }),
  )
  const { loaded } = pages
  useReloading(loaded.state === 'ready' && loaded.data.data.some(isActive), pages.reload)
  return (
    <>
      <PageHead
        title="Batches"
        about="Of all workspaces, the newest first. Their lines run on capacity that is idle."
      />
      <Paged of={pages}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty icon={tasklistIcon} title="There are no batches yet">
              Members submit them in their console, through the API, or with <code>weir batch submit</code>.
            </Empty>
          ) : (
            <Table
              caption="Batches"
              rows={rows}
              keyOf={({ id }) => id}
              columns={batchColumns<Answer<'listBatches'>['data'][number]>(
                ({ id }) => `/console/batches/${id}`,
                [{ title: 'Workspace', cell: ({ workspace }) => <WorkspaceLink of={workspace} /> }],
              )}
            />
          )
        }
      </Paged>
    </>
  )
}

const WorkspaceLink = ({ of: name }: { of: string }) => <a href={workspacePath(name)}>{name}</a>

export function BatchPage() {
  const id = useRoute().params['id'] ?? ''
  const loaded = useData((signal) => api('getBatch', { path: { id }, signal }), [id])
  useReloading(loaded.state === 'ready' && isActive(loaded.data), loaded.reload)
  async function cancel(): Promise<void> {
    await api('cancelBatch', { path: { id } })
    loaded.reload()
  }
  return (
    <Ready of={loaded} shape="report">
      {(batch) => (
        <>
          <PageHead title={batch.filename ?? batch.id} about={`Requests to ${batch.endpoint}`}>
            <May call="cancelBatch">
              <CancelBatch of={batch} act={cancel} />
            </May>
          </PageHead>
          <BatchView of={batch} facts={[['Workspace', <WorkspaceLink of={batch.workspace} />]]} />
        </>
      )}
    </Ready>
  )
}
