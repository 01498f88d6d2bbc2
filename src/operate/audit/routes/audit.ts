import { Type } from 'typebox'
import type { Doer } from '../recorded.ts'
import type { AuditStore } from '../audit-store.ts'
import type { Clock } from '../../../shared/clock.ts'
import { EXAMPLE_TIME, nullable } from '../../../server/common-schema.ts'
import type { Exchange } from '../../../server/exchange.ts'
import { jsonResponse, type Route } from '../../../server/route.ts'
import { operatorRoute, type OperatorRoute } from '../../../server/operator-route.ts'

export interface AuditParts {
  readonly audit: AuditStore
  readonly clock: Clock
}

/** The token, or a session of the console. */
export function doerOf({ notes, address, requestId }: Exchange): Doer {
  const who = typeof notes['operator'] === 'string' ? notes['operator'] : 'operator (token)'
  return { actor: `${who} from ${address}`, requestId }
}

/** Actions that only commands perform. */
const commandTitles: ReadonlyMap<string, string> = new Map([['restoreBackup', 'Restore a backup']])

const entrySchema = Type.Object({
  id: Type.Integer({ example: 12 }),
  at: Type.String({ example: EXAMPLE_TIME }),
  actor: Type.String({
    description:
      'The person with their role, or the operator, or a key of a workspace by its name if it has one, with the address; or who ran a command, and where.',
    example: 'operator (token) from 127.0.0.1',
  }),
  request_id: Type.String({ description: 'Empty for a command.', example: '0mgx1vk2v5f0c7d9e2b14a6f8d3e5c70' }),
  action: Type.String({ description: 'The id of the operation.', example: 'changeWorkspace' }),
  title: Type.String({ description: 'The action in words.', example: 'Change a workspace' }),
  subject: Type.String({ example: 'acme' }),
  request: nullable(Type.String({ example: '{"spend_limit":"250.00"}' }), 'The body, as JSON without secrets.'),
  before: nullable(Type.String({ example: '{"spend_limit":null}' }), 'What it changed, before, as JSON.'),
  after: nullable(Type.String({ example: '{"spend_limit":"250.00"}' }), 'What it changed, after, as JSON.'),
  outcome: Type.Enum(['begun', 'done', 'refused'], {
    example: 'done',
    description: 'begun: the service ended before the action did, or it is still running.',
  }),
})

/** `routes` have the titles of actions. */
export function auditRoutes(
  { audit }: { readonly audit: AuditStore },
  routes: readonly Route[],
): readonly OperatorRoute[] {
  const titles = new Map([
    ...commandTitles,
    ...routes.flatMap(({ operation }) => (operation ? [[operation.id, operation.summary] as const] : [])),
  ])
  return [
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/audit-log',
      id: 'auditLog',
      summary: 'The audit log',
      description:
        'Every change that an operator made through this API, the console or a command, or a member in the console of a workspace, the newest first. It cannot be changed.',
      query: Type.Object({
        before: Type.Optional(Type.Integer({ minimum: 1, description: "The 'next' of the previous page." })),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, description: '1 to 200, by default 50.' })),
      }),
      response: jsonResponse(
        Type.Object({ object: Type.Literal('list'), data: Type.Array(entrySchema), next: nullable(Type.Integer()) }),
      ),
      errors: [],
      async answer({ exchange, query: { before, limit = 50 } }) {
        const entries = await audit.auditLog({ before, limit: limit + 1 })
        const data = entries.slice(0, limit).map(({ at, requestId, ...rest }) => ({
          ...rest,
          title: titles.get(rest.action) ?? rest.action,
          at: new Date(at).toISOString(),
          request_id: requestId,
        }))
        const next = entries.length > limit ? (data.at(-1)?.id ?? null) : null
        exchange.sendJson(JSON.stringify({ object: 'list', data, next }))
      },
    }),
  ]
}
