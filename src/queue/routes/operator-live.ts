import type { LiveFeed } from '../live.ts'
import { ApiError } from '../../shared/errors.ts'
import { liveStreams } from './live-stream.ts'
import type { OperatorRoute } from '../../server/operator-route.ts'
import { operatorSession, type OperatorSessionParts } from '../../workspaces/sessions/routes/operator-session.ts'
import { sampleView } from './queues.ts'

/** Streams the live queues to the operator's console. The stream ends when the session does. */
export function operatorLiveRoute(parts: OperatorSessionParts & { readonly live: LiveFeed }): OperatorRoute {
  const streams = liveStreams(parts.live)
  return {
    method: 'GET',
    path: '/console/api/live',
    access: 'operator',
    roles: ['operator', 'viewer'],
    operation: undefined,
    async answer(exchange) {
      const isAllowed = async (): Promise<boolean> => (await operatorSession(exchange, parts)) !== undefined
      if (!(await isAllowed())) throw new ApiError('missing_api_key', 'Sign in to the console.')
      await streams.send(exchange, { owner: 'operator', isAllowed, view: sampleView })
    },
  }
}
