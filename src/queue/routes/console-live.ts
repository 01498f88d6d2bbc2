import { Type } from 'typebox'
import type { WorkspaceSessions } from '../../workspaces/sessions/workspace-sessions.ts'
import { deploymentFor, isVisible } from '../../catalog/model.ts'
import type { Workspace } from '../../workspaces/workspace.ts'
import type { LiveFeed, Sample } from '../live.ts'
import { EXAMPLE_MODEL, nullable, textSchema } from '../../server/common-schema.ts'
import { liveStreams } from './live-stream.ts'
import { sessionToken } from '../../server/console/session-cookie.ts'
import { sessionRoute, type SessionRoute } from '../../server/console/session-route.ts'
import { jsonResponse } from '../../server/route.ts'
import { unavailableFor, type ModelsParts } from '../../catalog/routes/models.ts'

/** The live load of the models, for the console of a workspace. */

export interface ConsoleLiveParts extends ModelsParts {
  readonly live: LiveFeed
  readonly sessions: WorkspaceSessions
  /** The models whose files are being downloaded. */
  downloads(): readonly DownloadState[]
}

export interface DownloadState {
  readonly model: string
  readonly receivedBytes: number
  readonly totalBytes: number | undefined
  readonly problem: string | undefined
}

const downloadSchema = Type.Object({
  model: Type.String(),
  received_bytes: Type.Integer(),
  total_bytes: nullable(Type.Integer()),
  problem: nullable(Type.String(), 'Why the last attempt failed. The download is retried.'),
})

const sampleSchema = Type.Object({
  at: Type.Integer({ description: 'Unix ms.', example: 1795000000000 }),
  models: Type.Array(
    Type.Object({
      model: Type.String({ example: EXAMPLE_MODEL }),
      available: Type.Boolean({ example: true }),
      in_flight_requests: Type.Integer({ example: 2 }),
      max_concurrent_requests: Type.Integer({ example: 4 }),
      committed_tokens: Type.Integer({ example: 4384 }),
      token_budget: Type.Integer({ example: 16384 }),
      queue_depth: Type.Integer(),
      wait_ms_p95: nullable(Type.Integer({ example: 120 }), 'Of requests that were admitted in the last five minutes.'),
      admitted_per_minute: nullable(
        Type.Number({ example: 14.2 }),
        'Over the last five minutes; null if no request was admitted.',
      ),
      admitted_requests: Type.Integer({ description: 'Since the start of the replica that answers.', example: 3120 }),
    }),
  ),
  downloads: Type.Array(downloadSchema, { example: [] }),
})

export function consoleLiveRoutes(parts: ConsoleLiveParts): readonly SessionRoute[] {
  const { live, sessions } = parts
  const streams = liveStreams(live)
  return [
    sessionRoute({
      method: 'GET',
      path: '/live',
      id: 'live',
      summary: 'Stream the load',
      description:
        'An event stream with a sample every two seconds. A request with Last-Event-ID also gets the samples that it missed in the last ten minutes.',
      response: {
        status: 200,
        content: {
          ...jsonResponse(sampleSchema).content,
          'text/event-stream': { schema: textSchema, example: 'id: m3x-1\nevent: sample\ndata: {…}\n\n' },
        },
      },
      errors: ['service_unavailable'],
      answer: ({ exchange, session: { caller } }) =>
        streams.send(exchange, {
          owner: caller.workspace.id,
          isAllowed: async () => (await sessions.find(sessionToken(exchange, 'weir_session') ?? '')) !== undefined,
          view: (sample) => viewOf(parts, caller.workspace, sample),
        }),
    }),
  ]
}

function viewOf(parts: ConsoleLiveParts, workspace: Workspace, { at, lanes, waits, admitted }: Sample): object {
  const models = parts.catalog.models().flatMap((model) => {
    const deployment = isVisible(model, workspace.name) ? deploymentFor(model, workspace.name) : undefined
    const lane = deployment && lanes.get(deployment.lane)
    if (!lane) return []
    return [
      {
        model: model.id,
        available: unavailableFor(parts, model, workspace.name) === undefined,
        in_flight_requests: lane.inFlightRequests,
        max_concurrent_requests: lane.limits.maxConcurrentRequests,
        committed_tokens: lane.committedTokens,
        token_budget: lane.limits.tokenBudget,
        queue_depth: lane.queueDepth,
        wait_ms_p95: waits.get(deployment.lane)?.p95 ?? null,
        admitted_per_minute: rounded(waits.get(deployment.lane)?.perMinute),
        admitted_requests: admitted.get(deployment.lane) ?? 0,
      },
    ]
  })
  return { at, models, downloads: parts.downloads().map(downloadView) }
}

const rounded = (rate: number | undefined): number | null => (rate === undefined ? null : Math.round(rate * 100) / 100)

export function downloadView({ model, receivedBytes, totalBytes, problem }: DownloadState) {
  return { model, received_bytes: receivedBytes, total_bytes: totalBytes ?? null, problem: problem ?? null }
}
