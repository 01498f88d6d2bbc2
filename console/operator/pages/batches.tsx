import { BatchTable, CancelBatch, OneBatch } from '../../shared/batch.tsx'
import { PageHead } from '../../shared/parts.tsx'
import { api, type Answer } from '../api.ts'
import { workspacePath } from '../paths.ts'
import { May } from '../session.tsx'

/** The batches of all workspaces. */
export function BatchesPage() {
  return (
    <>
      <PageHead
        title="Batches"
        about="Of all workspaces, the newest first. Their lines run on capacity that is idle."
      />
      <BatchTable<Answer<'listBatches'>['data'][number]>
        load={(query, signal) => api('listBatches', { query, signal })}
        others={[{ title: 'Workspace', cell: ({ workspace }) => <WorkspaceLink of={workspace} /> }]}
      >
        Members submit them in their console, through the API, or with a command.
        <code>npx weir batch submit FILE</code>
      </BatchTable>
    </>
  )
}

const WorkspaceLink = ({ of: name }: { of: string }) => <a href={workspacePath(name)}>{name}</a>

export function BatchPage() {
  return (
    <OneBatch<Answer<'getBatch'>>
      load={(id, signal) => api('getBatch', { path: { id }, signal })}
      actions={(batch, reload) => (
        <May call="cancelBatch">
          <CancelBatch of={batch} act={() => api('cancelBatch', { path: { id: batch.id } }).then(reload)} />
        </May>
      )}
      factsOf={({ workspace }) => [['Workspace', <WorkspaceLink of={workspace} />]]}
    />
  )
}
