import { Type } from 'typebox'
import type { Clock } from '../../../shared/clock.ts'
import type { ReportStore } from '../report-store.ts'
import type { UsageStore } from '../usage-store.ts'
import { sessionRoute, type SessionRoute } from '../../../server/console/session-route.ts'
import { latencyOverview } from './latency-overview.ts'
import {
  latencyReportSchema,
  monthReportSchema,
  periodQuery,
  requestListExample,
  requestListQuery,
  requestListSchema,
  usageFilterQuery,
  usageReportSchema,
} from './report-schema.ts'
import { monthOverview, requestList, usageOverview } from './reports.ts'
import { jsonResponse } from '../../../server/route.ts'

/** What the workspace used, for its members. */

export interface ConsoleReportsParts {
  readonly reader: UsageStore & ReportStore
  readonly clock: Clock
}

const groupedQuery = Type.Object({
  ...periodQuery,
  ...usageFilterQuery,
  group_by: Type.Optional(Type.Enum(['model', 'key'], { description: 'model (default) or key.' })),
})

export function consoleReportRoutes({ reader, clock }: ConsoleReportsParts): readonly SessionRoute[] {
  return [
    sessionRoute({
      method: 'GET',
      path: '/reports/usage',
      id: 'usageReport',
      summary: 'Usage over time',
      description: 'Requests, tokens and cost of a period by hour or day, and of the models or keys that cost most.',
      query: groupedQuery,
      response: jsonResponse(usageReportSchema),
      errors: [],
      answer: async ({ exchange, query, session: { caller } }) =>
        exchange.sendJson(
          JSON.stringify(await usageOverview(reader, caller.workspace.id, query, query.group_by ?? 'model')),
        ),
    }),
    sessionRoute({
      method: 'GET',
      path: '/reports/latency',
      id: 'latencyReport',
      summary: 'Times and failures',
      description:
        'How long requests of a period waited and took, and how many failed, by hour or day, and by model or key. Made from up to 5,000 rows, spread over the period: the newest of each of its parts, or of the hours in which a model or key has its few requests.',
      query: groupedQuery,
      response: jsonResponse(latencyReportSchema),
      errors: ['service_unavailable'],
      answer: async ({ exchange, query, session: { caller } }) =>
        exchange.sendJson(
          JSON.stringify(
            await latencyOverview(exchange, reader, caller.workspace.id, query, query.group_by ?? 'model', clock.now()),
          ),
        ),
    }),
    sessionRoute({
      method: 'GET',
      path: '/reports/month',
      id: 'monthReport',
      summary: 'The month so far',
      description: 'What this month has cost, how fast, what it will come to, and whether the spend limit is reached.',
      response: jsonResponse(monthReportSchema),
      errors: [],
      answer: async ({ exchange, session: { caller } }) =>
        exchange.sendJson(JSON.stringify(await monthOverview(reader, caller.workspace, clock.now()))),
    }),
    sessionRoute({
      method: 'GET',
      path: '/requests',
      id: 'requests',
      summary: 'Find requests',
      description:
        'One page of settled requests by key, model, outcome, status, error code and time, in any combination, the newest first. A page reads no more than 5,000 rows, or 500 failures.',
      query: requestListQuery,
      response: jsonResponse(requestListSchema, requestListExample),
      errors: [],
      answer: async ({ exchange, query, session: { caller } }) =>
        exchange.sendJson(JSON.stringify(await requestList(reader, caller.workspace.id, query))),
    }),
  ]
}
