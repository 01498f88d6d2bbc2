import { Type } from 'typebox'
import type { Accounts } from '../../../workspaces/accounts.ts'
import type { ReportStore } from '../report-store.ts'
import {
  periodQuery,
  reportGroupings,
  requestListExample,
  requestListQuery,
  requestListSchema,
  usageReportSchema,
} from './report-schema.ts'
import { requestList, usageOverview } from './reports.ts'
import { jsonResponse } from '../../../server/route.ts'
import { operatorRoute, type OperatorRoute } from '../../../server/operator-route.ts'

/** Reports about all workspaces, or one. */

export interface ReportsParts {
  readonly accounts: Accounts
  readonly store: ReportStore
}

const workspace = Type.Optional(Type.String({ description: 'The name or id of a workspace. Without it: all of them.' }))

export function reportRoutes({ accounts, store }: ReportsParts): readonly OperatorRoute[] {
  return [
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/reports/usage',
      id: 'usageReport',
      summary: 'Usage over time',
      description: 'Requests, tokens and cost of a period by hour or day, and of those that cost most.',
      query: Type.Object({
        workspace,
        ...periodQuery,
        group_by: Type.Optional(Type.Enum([...reportGroupings], { description: 'workspace (default), model or key.' })),
      }),
      response: jsonResponse(usageReportSchema),
      errors: ['not_found', 'missing_required_parameter'],
      async answer({ exchange, query }) {
        const groupBy = query.group_by ?? 'workspace'
        const workspaceId = query.workspace ? accounts.workspace(query.workspace).id : undefined
        const report = await usageOverview(store, workspaceId, query, groupBy, (group) =>
          groupBy === 'workspace' ? (accounts.workspaces().find(({ id }) => id === group)?.name ?? group) : group,
        )
        exchange.sendJson(JSON.stringify(report))
      },
    }),
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/requests',
      id: 'listRequests',
      summary: 'The newest requests',
      description: 'One page of the settled requests of a workspace, the newest first.',
      query: Type.Object({
        workspace: Type.String({ description: 'The name or id of a workspace.', example: 'acme' }),
        ...requestListQuery.properties,
      }),
      response: jsonResponse(requestListSchema, requestListExample),
      errors: ['not_found', 'missing_required_parameter'],
      answer: async ({ exchange, query }) =>
        exchange.sendJson(JSON.stringify(await requestList(store, accounts.workspace(query.workspace).id, query))),
    }),
  ]
}
