import Type from 'typebox'
import { ApiError } from '../core/errors.ts'
import { jsonResponse, openRoute, type OpenRoute } from './route.ts'

/** The two health checks, the same on both listeners. */
export function healthRoutes(isReady: () => boolean): readonly OpenRoute[] {
  return [
    openRoute('/healthz', (exchange) => exchange.sendJson('{"status":"alive"}'), {
      id: 'health',
      summary: 'Liveness',
      description: 'Answers as long as the process runs.',
      response: jsonResponse(Type.Object({ status: Type.Literal('alive') })),
      errors: [],
    }),
    openRoute(
      '/readyz',
      (exchange) => {
        if (!isReady()) throw new ApiError('service_unavailable', 'The service is not ready.')
        exchange.sendJson('{"status":"ready"}')
      },
      {
        id: 'readiness',
        summary: 'Readiness',
        description: 'Answers 503 during a shutdown, and while usage cannot be recorded.',
        response: jsonResponse(Type.Object({ status: Type.Literal('ready') })),
        errors: ['service_unavailable'],
      },
    ),
  ]
}
