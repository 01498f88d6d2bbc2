import type { LiveFeed } from '../../ports/live.ts'
import { ApiError } from '../../core/errors.ts'
import { liveStreams } from '../console/live-stream.ts'
import type { OpenRoute } from '../route.ts'
import { operatorSession, type OperatorSessionParts } from './operator-session.ts'
import { sampleView } from './queues.ts'

/** The queues as they change, for the operator's console. It ends with the session. */
export function operatorLiveRoute(parts: OperatorSessionParts & { readonly live: LiveFeed }): OpenRoute {
  const streams = liveStreams(parts.live)
  return {
    method: 'GET',
    path: '/console/api/live',
    access: 'open',
    operation: undefined,
    async answer(exchange) {
      const isAllowed = async (): Promise<boolean> => (await operatorSession(exchange, parts)) !== undefined
      if (!(await isAllowed())) throw new ApiError('missing_api_key', 'Sign in to the console.')
      await streams.send(exchange, { owner: 'operator', isAllowed, view: sampleView })
    },
  }
}
