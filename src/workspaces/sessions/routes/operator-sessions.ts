import { Type } from 'typebox'
import type { Accounts } from '../../accounts.ts'
import { ApiError } from '../../../shared/errors.ts'
import { pageSchema } from '../../../server/common-schema.ts'
import { jsonResponse } from '../../../server/route.ts'
import { operatorRoute, type OperatorRoute } from '../../../server/operator-route.ts'
import { sessionList, sessionView } from '../session-list.ts'
import type { Sessions } from '../sessions.ts'
import { sessionIdParameter, sessionViewSchema } from './session-schema.ts'

/** Who is signed in to the consoles, for the operator. */

export interface OperatorSessionsParts {
  readonly accounts: Accounts
  readonly operatorSessions: Sessions
}

export function operatorSessionsRoutes({
  accounts,
  operatorSessions: sessions,
}: OperatorSessionsParts): readonly OperatorRoute[] {
  return [
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/sessions',
      id: 'listSessions',
      summary: 'List sessions',
      description: 'Who is signed in to either console, the newest first, in pages.',
      query: Type.Object({
        before: Type.Optional(Type.String({ maxLength: 100, description: "The 'next' of the previous page." })),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500, description: '1 to 500, by default 100.' })),
      }),
      response: jsonResponse(pageSchema(sessionViewSchema)),
      errors: [],
      async answer({ exchange, query: { before, limit = 100 } }) {
        const found = await sessions.list({ before, limit: limit + 1 })
        exchange.sendJson(JSON.stringify(await sessionList(accounts, found, limit)))
      },
    }),
    operatorRoute({
      method: 'DELETE',
      path: '/admin/v1/sessions/{id}',
      id: 'endSession',
      summary: 'End a session',
      description: 'Its next request is refused, at every replica. The person can sign in again.',
      parameters: { id: sessionIdParameter },
      response: jsonResponse(sessionViewSchema),
      errors: ['not_found'],
      async state({ parameters: { id } }) {
        const [found] = await sessions.list({ name: id, limit: 1 })
        return found && sessionView(accounts, found)
      },
      async answer({ exchange, parameters: { id } }) {
        const ended = await sessions.endByName(id)
        if (!ended) throw new ApiError('not_found', `There is no session "${id.slice(0, 100)}".`, { param: 'id' })
        exchange.sendJson(JSON.stringify(await sessionView(accounts, ended)))
      },
    }),
  ]
}
