import { Type } from 'typebox'
import { ApiError } from '../../shared/errors.ts'
import type { Coordination, Replica } from '../coordination.ts'
import { EXAMPLE_TIME, nullable } from '../../server/common-schema.ts'
import { newRequestId } from '../../server/incoming-request.ts'
import { jsonResponse } from '../../server/route.ts'
import { recorded } from '../../operate/audit/recorded.ts'
import type { AuditParts } from '../../operate/audit/routes/audit.ts'
import { operatorRoute, type OperatorRoute } from '../../server/operator-route.ts'

/** Lists the processes of the service, and drains one of them. */

export interface ReplicasParts {
  readonly coordination: Coordination
}

const nameExample = 'weir-1-4711-1f0c2a9b'
const replicaName = Type.String({ example: nameExample })

const replicaSchema = Type.Object({
  name: replicaName,
  version: Type.String({ example: '0.2.0' }),
  started_at: Type.String({ example: EXAMPLE_TIME }),
  epoch: nullable(
    Type.String({ example: '1795000000000000' }),
    'Changes when Redis loses its data; null without Redis.',
  ),
  in_flight_requests: Type.Integer({ example: 3 }),
  queue_depth: Type.Integer(),
  journal_bytes: Type.Integer({ description: 'Bytes of its journal that are not in the database yet.' }),
  journal_lag_ms: Type.Integer({ description: 'How long the oldest of them have waited.' }),
  draining: Type.Boolean({ description: 'true: it takes no new work, and leaves when its requests have finished.' }),
})

const stateSchema = Type.Enum(['alone', 'joined', 'apart', 'stopped'], {
  example: 'joined',
  description:
    'How the replica that answers coordinates with the others. All replicas are listed only if it is joined.',
})

export function replicaRoutes({ coordination }: ReplicasParts): readonly OperatorRoute[] {
  return [
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/replicas',
      id: 'listReplicas',
      summary: 'Replicas',
      description: 'Every serving process, at most a second old.',
      response: jsonResponse(
        Type.Object({
          object: Type.Literal('list'),
          coordination: stateSchema,
          answered_by: { ...replicaName, description: 'The replica that answers.' },
          data: Type.Array(replicaSchema),
        }),
      ),
      errors: [],
      answer: async ({ exchange }) => exchange.sendJson(JSON.stringify(await listView(coordination))),
    }),
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/replicas/{name}/drain',
      id: 'drainReplica',
      summary: 'Drain a replica',
      description:
        'The replica takes no new work, refuses waiting requests with 503, finishes running requests, and leaves. It receives the request within a second; from then on its `/readyz` is 503. Repeating the request changes nothing.',
      parameters: { name: { description: 'The name of a replica.', example: nameExample } },
      response: jsonResponse(Type.Object({ name: replicaName, asked: Type.Literal(true) })),
      errors: ['not_found', 'service_unavailable'],
      state: ({ parameters: { name } }) => stateOf(coordination, name),
      async answer({ exchange, parameters: { name } }) {
        await drain(coordination, name)
        exchange.sendJson(JSON.stringify({ name, asked: true }))
      },
    }),
  ]
}

/** The same operations for commands on this machine. */
export function replicaCommands(coordination: Coordination, audit: AuditParts) {
  return {
    list: () => listView(coordination),
    drain(name: string, actor: string): Promise<void> {
      const action = {
        action: 'drainReplica',
        subject: name,
        body: undefined,
        state: () => stateOf(coordination, name),
      }
      return recorded(audit, { actor, requestId: newRequestId() }, action, () => drain(coordination, name))
    },
  }
}

async function drain(coordination: Coordination, name: string): Promise<void> {
  const isThere = await coordination.drain(name).catch((cause: unknown) => {
    throw new ApiError(
      'service_unavailable',
      'Redis does not answer, so other replicas cannot be drained. Try again.',
      { cause },
    )
  })
  if (isThere) return
  const names = (await coordination.list()).map((replica) => replica.name).join(', ')
  throw new ApiError('not_found', `There is no replica "${name.slice(0, 200)}". There are: ${names}.`, {
    param: 'name',
  })
}

async function stateOf(coordination: Coordination, name: string): Promise<object | undefined> {
  const found = (await coordination.list()).find((replica) => replica.name === name)
  return found && replicaView(found)
}

async function listView(coordination: Coordination) {
  const data = (await coordination.list()).map(replicaView)
  return { object: 'list' as const, coordination: coordination.state(), answered_by: coordination.replica, data }
}

function replicaView(replica: Replica) {
  return {
    name: replica.name,
    version: replica.version,
    started_at: new Date(replica.startedAt).toISOString(),
    epoch: replica.epoch,
    in_flight_requests: replica.inFlightRequests,
    queue_depth: replica.queueDepth,
    journal_bytes: replica.journalBytes,
    journal_lag_ms: Math.round(replica.journalLagMs),
    draining: replica.isDraining,
  }
}
