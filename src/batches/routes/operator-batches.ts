import { Type } from 'typebox'
import { pageSchema, workspaceName } from '../../server/common-schema.ts'
import { operatorRoute, type OperatorRoute } from '../../server/operator-route.ts'
import { jsonResponse } from '../../server/route.ts'
import type { Accounts } from '../../workspaces/accounts.ts'
import type { Batch } from '../batch-store.ts'
import { batchDetail, batchDetailSchema, batchInList, batchInListSchema, pageQuery } from './batch-views.ts'
import { parameters, type BatchesRouteParts } from './batches.ts'

/** The batches of all workspaces, for the operator. */

export interface OperatorBatchesParts extends BatchesRouteParts {
  readonly accounts: Accounts
}

const workspace = { workspace: Type.String({ description: 'The name of the workspace.', example: 'default' }) }
const inListSchema = Type.Object({ ...workspace, ...batchInListSchema.properties })
const detailSchema = Type.Object({ ...workspace, ...batchDetailSchema.properties })

export function operatorBatchRoutes({ batches, accounts }: OperatorBatchesParts): readonly OperatorRoute[] {
  const nameOf = ({ workspaceId }: Batch): string => accounts.workspaceById(workspaceId)?.name ?? workspaceId
  const inList = (batch: Batch) => ({ workspace: nameOf(batch), ...batchInList(batch) })
  const detail = async (batch: Batch) => ({ workspace: nameOf(batch), ...(await batchDetail(batches, batch)) })
  return [
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/batches',
      id: 'listBatches',
      summary: 'List batches',
      description: 'The batches of all workspaces, or of one, in pages, the newest first.',
      query: Type.Object({ ...pageQuery, workspace: Type.Optional(workspaceName) }),
      response: jsonResponse(pageSchema(inListSchema)),
      errors: ['not_found'],
      async answer({ exchange, query: { before, limit = 20, workspace: name } }) {
        const workspaceId = name === undefined ? undefined : accounts.workspace(name).id
        const page = await batches.list({ workspaceId, after: before, limit })
        const next = page.hasMore ? page.batches.at(-1)?.id : null
        exchange.sendJson(JSON.stringify({ object: 'list', data: page.batches.map(inList), next }))
      },
    }),
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/batches/{id}',
      id: 'getBatch',
      summary: 'Show a batch',
      description: 'The state of a batch, what its lines have cost so far, how fast they go, and why some failed.',
      parameters,
      response: jsonResponse(detailSchema),
      errors: ['not_found'],
      async answer({ exchange, parameters: { id } }) {
        exchange.sendJson(JSON.stringify(await detail(await batches.batch(undefined, id))))
      },
    }),
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/batches/{id}/cancel',
      id: 'cancelBatch',
      summary: 'Cancel a batch',
      description:
        'No further line is run. Lines that an engine has finish and are billed. The workspace finds the results so far in the output file.',
      parameters,
      response: jsonResponse(detailSchema),
      errors: ['not_found', 'conflict'],
      state: async ({ parameters: { id } }) => inList(await batches.batch(undefined, id)),
      async answer({ exchange, parameters: { id } }) {
        exchange.sendJson(JSON.stringify(await detail(await batches.cancel(undefined, id))))
      },
    }),
  ]
}
