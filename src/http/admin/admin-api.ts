import { hash, timingSafeEqual } from 'node:crypto'
import { ApiError } from '../../core/errors.ts'
import type { Exchange } from '../exchange.ts'
import { refuseUnrouted, routeTable } from '../router.ts'
import type { Application } from '../server.ts'
import { adminRoutes, type AdminRouteParts } from './admin-routes.ts'

/** The operator's listener: everything but health checks and documentation needs the operator's token. */
export interface AdminParts extends AdminRouteParts {
  readonly operatorToken: string
}

export function adminApi(parts: AdminParts): Application {
  const { log } = parts.telemetry
  const routes = routeTable(adminRoutes(parts))
  const expected = digest(parts.operatorToken)

  function authorize(exchange: Exchange): void {
    const given = /^bearer +(\S+) *$/i.exec(exchange.request.headers.authorization ?? '')?.[1]
    if (given === undefined) {
      throw new ApiError('missing_api_key', 'Send the operator token in the header Authorization: Bearer <TOKEN>.')
    }
    if (!timingSafeEqual(digest(given), expected)) throw new ApiError('invalid_api_key', 'The operator token is wrong.')
  }

  return {
    async answer(exchange) {
      const match = routes.find(exchange.method, exchange.path)
      if (match.kind !== 'found' || match.route.access !== 'open') authorize(exchange)
      if (match.kind !== 'found') return refuseUnrouted(exchange, match)
      return match.route.answer(exchange, match.parameters)
    },
    look: async () => undefined,
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

function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}
