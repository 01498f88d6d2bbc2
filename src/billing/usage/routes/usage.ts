import { ownGroupings } from '../usage-report.ts'
import type { Clock } from '../../../shared/clock.ts'
import type { Refusals } from '../../refused-requests/refusal-store.ts'
import type { UsageStore } from '../usage-store.ts'
import type { Telemetry } from '../../../operate/telemetry/telemetry.ts'
import { cacheView, usageView } from '../views.ts'
import { ownCacheResponse } from './cache-use.ts'
import { refusedQuery, refusedReport, refusedReportSchema } from '../../refused-requests/routes/refused-report.ts'
import { jsonResponse } from '../../../server/route.ts'
import { sendUsage, sendUsageRow } from './send-usage.ts'
import {
  requestIdDescription,
  usageQuerySchema,
  usageResponse,
  usageRowExample,
  usageRowSchema,
} from './usage-schema.ts'
import { keyRoute, type KeyRoute } from '../../../server/key-route.ts'

export interface OwnUsageParts {
  readonly usage: UsageStore
  readonly telemetry: Pick<Telemetry, 'cacheUse'>
  readonly refusals: Refusals
  readonly clock: Clock
}

/** What the caller's own workspace used. */
export function ownUsageRoutes(parts: OwnUsageParts): readonly KeyRoute[] {
  const { usage: store, telemetry, refusals, clock } = parts
  return [
    keyRoute({
      method: 'GET',
      path: '/usage',
      id: 'usage',
      summary: 'Usage',
      description:
        'What the keys of this workspace used and what it cost, row by row or as sums. Dates are days in Sydney. With format=csv or format=jsonl, all rows of the period come as one file.',
      query: usageQuerySchema(ownGroupings),
      response: usageResponse(ownGroupings),
      errors: ['invalid_value'],
      answer: ({ exchange, caller, query }) =>
        sendUsage(exchange, query.format ?? 'json', store, {
          workspaceId: caller.workspace.id,
          groupings: ownGroupings,
        }),
    }),
    keyRoute({
      method: 'GET',
      path: '/usage/cache',
      id: 'usageCache',
      summary: 'Cache hits',
      description:
        'How much of the input of each key was in the caches of engines since the service started, and the likely cause of misses: what to change in a prompt so that more of it is cached.',
      response: ownCacheResponse,
      errors: [],
      answer: async ({ exchange, caller }) =>
        exchange.sendJson(
          JSON.stringify({ object: 'list', data: telemetry.cacheUse.entries(caller.workspace.id).map(cacheView) }),
        ),
    }),
    keyRoute({
      method: 'GET',
      path: '/usage/refused',
      id: 'usageRefused',
      summary: 'Refused requests',
      description:
        'Requests of this workspace that were refused before a model had them: how many by error code and key over time, and the newest ones with the reason. They are not billed and not in the usage.',
      query: refusedQuery,
      response: jsonResponse(refusedReportSchema({ withWorkspaces: false })),
      errors: ['invalid_value'],
      answer: async ({ exchange, caller, query }) =>
        exchange.sendJson(JSON.stringify(await refusedReport(refusals, caller.workspace.id, query, clock.now()))),
    }),
    keyRoute({
      method: 'GET',
      path: '/usage/{request_id+}',
      id: 'usageRequestId',
      summary: 'Usage of one request',
      description: 'One row, by the X-Request-Id of its response.',
      parameters: { request_id: requestIdDescription },
      response: jsonResponse(usageRowSchema, usageRowExample),
      errors: ['not_found'],
      answer: ({ exchange, caller, parameters }) =>
        sendUsageRow(exchange, store, parameters.request_id, (row) =>
          row.workspaceId === caller.workspace.id ? usageView(row) : undefined,
        ),
    }),
  ]
}
