import { Type } from 'typebox'
import { pageSchema } from '../../server/common-schema.ts'
import { sessionRoute, type SessionRoute } from '../../server/console/session-route.ts'
import { jsonResponse } from '../../server/route.ts'
import { batchDetail, batchDetailSchema, batchInList, batchInListSchema, pageQuery } from './batch-views.ts'
import { parameters, type BatchesRouteParts } from './batches.ts'

/** The batches of the workspace with what only its console shows. Files and actions are those of the public API. */
export function consoleBatchRoutes({ batches }: BatchesRouteParts): readonly SessionRoute[] {
  return [
    sessionRoute({
      method: 'GET',
      path: '/batches',
      id: 'batches',
      summary: 'List batches',
      description: 'The batches of the workspace in pages, the newest first.',
      query: Type.Object(pageQuery),
      response: jsonResponse(pageSchema(batchInListSchema)),
      errors: ['not_found'],
      async answer({ exchange, query: { before, limit = 20 }, session: { caller } }) {
        const page = await batches.list({ workspaceId: caller.workspace.id, after: before, limit })
        const next = page.hasMore ? page.batches.at(-1)?.id : null
        exchange.sendJson(JSON.stringify({ object: 'list', data: page.batches.map(batchInList), next }))
      },
    }),
    sessionRoute({
      method: 'GET',
      path: '/batches/{id}',
      id: 'batch',
      summary: 'Show a batch',
      description: 'The state of a batch, what its lines have cost so far, how fast they go, and why some failed.',
      parameters,
      response: jsonResponse(batchDetailSchema),
      errors: ['not_found'],
      async answer({ exchange, parameters: { id }, session: { caller } }) {
        const batch = await batches.batch(caller.workspace.id, id)
        exchange.sendJson(JSON.stringify(await batchDetail(batches, batch)))
      },
    }),
  ]
}
