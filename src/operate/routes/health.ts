import { Type } from 'typebox'
import { ApiError } from '../../shared/errors.ts'
import type { CoordinationState } from '../../cluster/coordination.ts'
import { jsonResponse, openRoute, type OpenRoute } from '../../server/route.ts'

export interface Readiness {
  readonly isReady: boolean
  /** How many addresses of engines answer, and how many do not. */
  readonly engines: { readonly up: number; readonly down: number }
  readonly coordination: CoordinationState
  /** False while PostgreSQL does not answer. The journal keeps the rows, within its limit. */
  readonly isDatabaseUp: boolean
  /** The replica is draining: new requests are refused, and running ones are finished. */
  readonly isDraining: boolean
}

/** The two health checks, the same on both listeners. */
export function healthRoutes(readiness: () => Readiness): readonly OpenRoute[] {
  return [
    openRoute('/healthz', async (exchange) => exchange.sendJson('{"status":"alive"}'), {
      id: 'health',
      summary: 'Liveness',
      description: 'Answers as long as the process runs.',
      response: jsonResponse(Type.Object({ status: Type.Literal('alive') })),
      errors: ['request_timeout'],
    }),
    openRoute(
      '/readyz',
      async (exchange) => {
        const { isReady, engines, coordination, isDatabaseUp, isDraining } = readiness()
        if (isDraining) {
          throw new ApiError('service_unavailable', 'The service is not ready: it is draining, and leaves soon.')
        }
        if (coordination === 'stopped') {
          throw new ApiError('service_unavailable', 'The service is not ready: Redis does not answer.')
        }
        if (!isReady) throw new ApiError('service_unavailable', 'The service is not ready.')
        exchange.sendJson(
          JSON.stringify({ status: 'ready', engines, coordination, database: isDatabaseUp ? 'up' : 'away' }),
        )
      },
      {
        id: 'readiness',
        summary: 'Readiness',
        description:
          'Answers 503 during a shutdown or a drain, while usage cannot be recorded, and while Redis has not answered for so ' +
          'long that this replica must not serve. Counts the engines that are up and down: a service whose engines ' +
          'are down is still ready, and answers with an error. `coordination` is `alone` without Redis, `joined` with ' +
          'it, and `apart` while this replica serves its share without it. `database` is `away` while PostgreSQL does not ' +
          'answer: requests go on, and their rows are kept until it is back.',
        response: jsonResponse(
          Type.Object({
            status: Type.Literal('ready'),
            engines: Type.Object({
              up: Type.Integer({ minimum: 0, example: 3 }),
              down: Type.Integer({ minimum: 0 }),
            }),
            coordination: Type.Enum(['alone', 'joined', 'apart']),
            database: Type.Enum(['up', 'away']),
          }),
        ),
        errors: ['request_timeout', 'service_unavailable'],
      },
    ),
  ]
}
