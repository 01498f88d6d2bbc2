import { Type } from 'typebox'
import type { Accounts } from '../../../workspaces/accounts.ts'
import type { Clock } from '../../../shared/clock.ts'
import type { ReportStore } from '../report-store.ts'
import { latencyOfWorkspaces, latencyOverview } from './latency-overview.ts'
import {
  latencyReportSchema,
  periodQuery,
  reportGroupings,
  operatorRequestListExample,
  operatorRequestListSchema,
  requestListQuery,
  usageFilterQuery,
  usageReportSchema,
} from './report-schema.ts'
import { operatorRowView } from '../views.ts'
import { requestList, usageOverview } from './reports.ts'
import { ApiError } from '../../../shared/errors.ts'
import { jsonResponse } from '../../../server/route.ts'
import { operatorRoute, type OperatorRoute } from '../../../server/operator-route.ts'

/** Reports about all workspaces, or one. */

export interface ReportsParts {
  readonly accounts: Accounts
  readonly store: ReportStore
  readonly clock: Clock
}

const workspace = Type.Optional(Type.String({ description: 'The name or id of a workspace. Without it: all of them.' }))

export function reportRoutes({ accounts, store, clock }: ReportsParts): readonly OperatorRoute[] {
  return [
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/reports/usage',
      id: 'usageReport',
      roles: ['finance', 'viewer'],
      summary: 'Usage over time',
      description: 'Requests, tokens and cost of a period by hour or day, and of those that cost most.',
      query: Type.Object({
        workspace,
        ...periodQuery,
        ...usageFilterQuery,
        group_by: Type.Optional(Type.Enum([...reportGroupings], { description: 'workspace (default), model or key.' })),
      }),
      response: jsonResponse(usageReportSchema),
      errors: ['not_found', 'missing_required_parameter'],
      async answer({ exchange, query }) {
        const groupBy = query.group_by ?? 'workspace'
        const workspaceId = query.workspace ? accounts.workspace(query.workspace).id : undefined
        const report = await usageOverview(store, workspaceId, query, groupBy, (group) =>
          groupBy === 'workspace' ? (accounts.workspaceById(group)?.name ?? group) : group,
        )
        exchange.sendJson(JSON.stringify(report))
      },
    }),
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/reports/latency',
      id: 'latencyReport',
      roles: ['finance', 'viewer'],
      summary: 'Times and failures',
      description:
        'How long requests of a period waited and took, and how many failed, by hour or day: of a workspace by model, or of the six workspaces that cost most. Made from up to 5,000 rows of each workspace, spread over the period.',
      query: Type.Object({ workspace, ...periodQuery, ...usageFilterQuery }),
      response: jsonResponse(latencyReportSchema),
      errors: ['not_found', 'service_unavailable'],
      async answer({ exchange, query }) {
        const report = query.workspace
          ? await latencyOverview(exchange, store, accounts.workspace(query.workspace).id, query, 'model', clock.now())
          : await latencyOfWorkspaces(
              exchange,
              store,
              query,
              clock.now(),
              (id) => accounts.workspaceById(id)?.name ?? id,
            )
        exchange.sendJson(JSON.stringify(report))
      },
    }),
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/requests',
      id: 'listRequests',
      roles: ['finance', 'viewer'],
      summary: 'Find requests',
      description:
        'One page of settled requests by workspace, key, model, outcome, status, error code and time, in any combination, the newest first. A page reads no more than 5,000 rows, or 500 failures.',
      query: Type.Object({ workspace, ...requestListQuery.properties }),
      response: jsonResponse(operatorRequestListSchema, operatorRequestListExample),
      errors: ['not_found'],
      async answer({ exchange, query }) {
        const workspaceId = query.workspace ? accounts.workspace(query.workspace).id : await workspaceOf(query.key)
        const list = await requestList(store, workspaceId, query, (row) => operatorRowView(row, accounts))
        exchange.sendJson(JSON.stringify(list))
      },
    }),
  ]

  async function workspaceOf(keyId: string | undefined): Promise<string | undefined> {
    if (!keyId) return undefined
    const key = await accounts.key(keyId)
    if (key) return key.workspaceId
    throw new ApiError('not_found', `There is no key "${keyId.slice(0, 100)}".`, { param: 'key' })
  }
}
