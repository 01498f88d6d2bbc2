import { Type } from 'typebox'
import type { Accounts } from '../../../workspaces/accounts.ts'
import type { Invoicing } from '../../invoices/invoices.ts'
import { groupings } from '../usage-sums.ts'
import type { Clock } from '../../../shared/clock.ts'
import type { Refusals } from '../../refused-requests/refusal-store.ts'
import type { UsageStore } from '../usage-store.ts'
import type { Telemetry } from '../../../operate/telemetry/telemetry.ts'
import { cacheView, operatorRowView } from '../views.ts'
import { cacheResponse } from './cache-use.ts'
import { refusedQuery, refusedReport, refusedReportSchema } from '../../refused-requests/routes/refused-report.ts'
import { jsonResponse } from '../../../server/route.ts'
import { sendUsage, sendUsageRow } from './send-usage.ts'
import {
  requestIdDescription,
  usageQuerySchema,
  usageResponse,
  operatorRowExample,
  operatorRowSchema,
  usageRowExample,
} from './usage-schema.ts'
import { operatorRoute, type OperatorRoute } from '../../../server/operator-route.ts'

/** What all workspaces used. */

export interface UsageParts {
  readonly accounts: Accounts
  readonly store: UsageStore
  readonly invoicing: Invoicing
  readonly telemetry: Pick<Telemetry, 'cacheUse'>
  readonly refusals: Refusals
  readonly clock: Clock
}

const usageQuery = Type.Object({
  workspace: Type.Optional(
    Type.String({ description: 'The name or id of a workspace. Only sums can cover all workspaces.' }),
  ),
  ...usageQuerySchema(groupings).properties,
})

export function usageRoutes(parts: UsageParts): readonly OperatorRoute[] {
  const { accounts, store, invoicing, telemetry, refusals, clock } = parts
  return [
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/usage',
      id: 'listUsage',
      roles: ['finance', 'viewer'],
      summary: 'Usage',
      description:
        'What a workspace used and what it cost, row by row or as sums. Dates are days in Sydney. With format=csv or format=jsonl, all rows of the period come as one file.',
      query: usageQuery,
      response: usageResponse(groupings),
      errors: ['missing_required_parameter', 'not_found'],
      answer: ({ exchange, query: { workspace, format = 'json' } }) =>
        sendUsage(exchange, format, store, {
          workspaceId: workspace === undefined ? undefined : accounts.workspace(workspace).id,
          groupings,
          workspaceName: (id) => accounts.workspace(id).name,
        }),
    }),
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/usage/cache',
      id: 'listCacheUse',
      roles: ['finance', 'viewer'],
      summary: 'Cache hits',
      description:
        'How much of the input of each key was in the caches of engines since the service started, and the likely cause of misses.',
      query: Type.Object({
        workspace: Type.Optional(Type.String({ description: 'The name or id of a workspace. By default all.' })),
      }),
      response: cacheResponse,
      errors: ['not_found'],
      async answer({ exchange, query: { workspace } }) {
        const entries = telemetry.cacheUse.entries(
          workspace === undefined ? undefined : accounts.workspace(workspace).id,
        )
        const data = entries.map((it) => ({ workspace: accounts.workspace(it.workspaceId).name, ...cacheView(it) }))
        exchange.sendJson(JSON.stringify({ object: 'list', data }))
      },
    }),
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/usage/refused',
      id: 'listRefused',
      roles: ['finance', 'viewer'],
      summary: 'Refused requests',
      description:
        'Requests that were refused before a model had them: how many by workspace, key and error code over time, and the newest ones with the reason. Without a workspace: of all, and those without a valid key.',
      query: Type.Object({
        workspace: Type.Optional(Type.String({ description: 'The name or id of a workspace. By default all.' })),
        ...refusedQuery.properties,
      }),
      response: jsonResponse(refusedReportSchema({ withWorkspaces: true })),
      errors: ['not_found'],
      async answer({ exchange, query }) {
        const workspaceId = query.workspace === undefined ? undefined : accounts.workspace(query.workspace).id
        const names = new Map(accounts.workspaces().map(({ id, name }) => [id, name]))
        const report = await refusedReport(refusals, workspaceId, query, clock.now(), (id) => names.get(id) ?? null)
        exchange.sendJson(JSON.stringify(report))
      },
    }),
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/usage/{request_id}',
      id: 'getUsage',
      roles: ['finance', 'viewer'],
      summary: 'Usage of one request',
      description: 'One row of any workspace, by the X-Request-Id of its response.',
      parameters: { request_id: requestIdDescription },
      response: jsonResponse(operatorRowSchema, operatorRowExample),
      errors: ['not_found'],
      answer: ({ exchange, parameters }) =>
        sendUsageRow(exchange, store, parameters.request_id, (row) => operatorRowView(row, accounts)),
    }),
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/usage/{request_id}/correct',
      id: 'correctUsage',
      summary: 'Correct a row',
      description:
        'Reverses a row that has not been invoiced yet. The row stays; a new row takes its amount back. Invoiced rows need an adjustment note instead.',
      parameters: { request_id: requestIdDescription },
      body: Type.Object({ reason: Type.String({ minLength: 1, maxLength: 1000 }) }),
      example: { reason: 'The engine answered with an empty text.' },
      response: jsonResponse(
        Type.Object({ corrects: Type.String({ description: 'The row that was reversed.' }) }),
        { corrects: usageRowExample.request_id },
        201,
      ),
      errors: ['not_found', 'conflict'],
      async answer({ exchange, parameters: { request_id: corrects }, body }) {
        await invoicing.correct(corrects, body.reason)
        exchange.sendJson(JSON.stringify({ corrects }), 201)
      },
    }),
  ]
}
