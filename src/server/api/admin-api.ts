import { ApiError } from '../../shared/errors.ts'
import type { Exchange } from '../exchange.ts'
import { refuseUnrouted, requireRole, routeTable } from '../router.ts'
import type { Application } from '../server.ts'
import { recorded } from '../../operate/audit/recorded.ts'
import { doerOf } from '../../operate/audit/routes/audit.ts'
import {
  isOperatorToken,
  operatorSession,
  operatorText,
  rolesOf,
} from '../../workspaces/sessions/routes/operator-session.ts'
import type { OperatorRole } from '../../shared/roles.ts'
import { adminRoutes, type AdminRouteParts } from './admin-routes.ts'

/** The operator's listener: everything but health checks, documentation and the console's page needs the operator. */
export type AdminParts = AdminRouteParts

export function adminApi(parts: AdminParts): Application {
  const { log } = parts.telemetry
  const routes = routeTable(adminRoutes(parts))

  /** By the token, or by a session of the console. Resolves with the roles of the caller. */
  async function authorize(exchange: Exchange): Promise<readonly OperatorRole[]> {
    const { authorization } = exchange.request.headers
    const session = authorization === undefined ? await operatorSession(exchange, parts) : undefined
    if (session) {
      const roles = rolesOf(session)
      exchange.notes = { ...exchange.notes, operator: operatorText(session, roles) }
      return roles
    }
    const given = authorization?.match(/^bearer +(\S+) *$/i)?.[1]
    if (given === undefined) {
      throw new ApiError('missing_api_key', 'Send the operator token in the header Authorization: Bearer <TOKEN>.')
    }
    if (!isOperatorToken(given, parts)) throw new ApiError('invalid_api_key', 'The operator token is wrong.')
    return ['operator']
  }

  return {
    async answer(exchange) {
      const match = routes.find(exchange.method, exchange.path)
      if (match.kind === 'found' && match.route.access === 'open') return match.route.answer(exchange, match.parameters)
      const roles = await authorize(exchange)
      if (match.kind !== 'found') return refuseUnrouted(exchange, match)
      requireRole(match.route, roles)
      return match.route.answer(exchange, match.parameters, (action, act) =>
        recorded(parts, doerOf(exchange), action, act),
      )
    },
    rateOf: async () => undefined,
    headers: () => ({}),
    over(exchange, failure) {
      const line = {
        request_id: exchange.requestId,
        method: exchange.method,
        path: exchange.path,
        status: exchange.status,
      }
      if (failure !== undefined) log.error({ ...line, err: failure }, 'operator request failed')
      else log.debug(line, 'operator request')
    },
  }
}
