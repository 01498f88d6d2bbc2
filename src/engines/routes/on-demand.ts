import { Type } from 'typebox'
import { ApiError } from '../../shared/errors.ts'
import { recorded } from '../../operate/audit/recorded.ts'
import type { AuditParts } from '../../operate/audit/routes/audit.ts'
import { EXAMPLE_MODEL, nullable } from '../../server/common-schema.ts'
import { newRequestId } from '../../server/incoming-request.ts'
import { operatorRoute, type OperatorRoute } from '../../server/operator-route.ts'
import { jsonResponse } from '../../server/route.ts'
import { engineOrders, type EngineOrder, type OnDemandEngines } from '../on-demand/on-demand.ts'
import type { OnDemandStatus } from '../on-demand/status.ts'
import { runStates } from '../on-demand/decisions.ts'
import { memorySources } from '../on-demand/memory-figures.ts'

/** Engines that Weir starts when they are needed: their state, and orders of operators. */

export interface OnDemandParts {
  readonly onDemand: Pick<OnDemandEngines, 'list' | 'order'>
}

export const onDemandSchema = Type.Object({
  state: Type.Enum([...runStates], {
    description: 'failed: it could not start or has crashed, and starts again with a later request.',
    example: 'ready',
  }),
  waiting: Type.Integer({ description: 'Requests that wait for it.' }),
  running: Type.Integer({ description: 'Requests that it works on.', example: 2 }),
  pinned: Type.Boolean({ description: 'true: it is neither swapped nor ended when it is idle.' }),
  can_sleep: Type.Boolean(),
  device: nullable(Type.String({ example: 'gpu0' })),
  device_bytes: nullable(Type.Integer({ example: 85_899_345_920 }), 'What all engines may take of the device.'),
  needed_bytes: Type.Integer({
    description: 'What is kept for it on its device while it runs.',
    example: 25_769_803_776,
  }),
  memory_source: nullable(
    Type.Enum([...memorySources], {
      description:
        'Where needed_bytes comes from. configured: run.memory in the catalog; measured: the most that it has taken; unmeasured: it has the device to itself until it is measured.',
    }),
    'null: it has no device.',
  ),
  measured_bytes: nullable(
    Type.Integer({ example: 24_301_797_376 }),
    'The most that it has taken of its device. null: it has not been measured.',
  ),
  held_bytes: Type.Integer({ description: 'What it takes of its device now.', example: 25_769_803_776 }),
  start_ms: Type.Array(Type.Integer({ example: 41_200 }), {
    description: 'How long its latest starts took, the oldest first.',
  }),
  ready_in_ms: nullable(
    Type.Integer(),
    'When it would be ready, by its earlier starts. null: it is ready, or has never started.',
  ),
  problem: nullable(Type.String(), 'Why it last failed.'),
  last_lines: Type.Array(Type.String(), { description: 'What it printed last before it ended.', example: [] }),
})

const orderSchema = Type.Object({
  lane: Type.String({ minLength: 1, maxLength: 300, description: 'The name of a lane, as listed.' }),
  order: Type.Enum([...engineOrders], {
    description:
      'start, or wake it from its sleep; stop it or let it sleep once its requests have ended; pin it, or unpin it.',
  }),
})

export function onDemandRoutes({ onDemand }: OnDemandParts): readonly OperatorRoute[] {
  return [
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/engines/orders',
      id: 'orderEngine',
      summary: 'Start or stop an engine',
      description:
        'For an engine with `run`. Returns at once; GET /admin/v1/engines shows when it is done. A stopped engine starts again with the next request. What is pinned here stays so until a restart or until the engine changes in the catalog.',
      body: orderSchema,
      example: { lane: EXAMPLE_MODEL, order: 'start' },
      response: jsonResponse(Type.Object({ lane: Type.String(), ...onDemandSchema.properties })),
      errors: ['not_found', 'conflict'],
      state: async ({ body: { lane } }) => auditState(find(onDemand, lane)),
      async answer({ exchange, body: { lane, order } }) {
        give(onDemand, lane, order)
        exchange.sendJson(JSON.stringify(statusView(find(onDemand, lane))))
      },
    }),
  ]
}

/** The same for commands on this machine. */
export function engineCommands({ onDemand }: OnDemandParts, audit: AuditParts) {
  return {
    list: () => onDemand.list().map(statusView),
    order(lane: string, order: string, actor: string): Promise<void> {
      const state = async (): Promise<object> => auditState(find(onDemand, lane))
      const action = { action: 'orderEngine', subject: lane, body: { order }, state }
      return recorded(audit, { actor, requestId: newRequestId() }, action, async () => give(onDemand, lane, order))
    },
  }
}

function give(onDemand: OnDemandParts['onDemand'], lane: string, order: string): void {
  const known = engineOrders.find((it): it is EngineOrder => it === order)
  const { canSleep } = find(onDemand, lane)
  if (!known) throw new ApiError('conflict', `There is no order "${order.slice(0, 50)}".`, { param: 'order' })
  if (known === 'sleep' && !canSleep) {
    throw new ApiError('conflict', `${lane} cannot sleep: its engine has no run.sleep in the catalog.`, {
      param: 'order',
    })
  }
  onDemand.order(lane, known)
}

function find({ list }: OnDemandParts['onDemand'], lane: string): OnDemandStatus {
  const status = list().find((it) => it.lane === lane)
  if (status) return status
  const message = `Weir starts no engine of the lane "${lane.slice(0, 200)}": the catalog has no such lane, or no "run" in its engine. GET /admin/v1/engines lists engines.`
  throw new ApiError('not_found', message, { param: 'lane' })
}

const auditState = ({ state, isPinned }: OnDemandStatus): object => ({ state, pinned: isPinned })

export function onDemandView(status: OnDemandStatus) {
  return {
    state: status.state,
    waiting: status.waiting,
    running: status.running,
    pinned: status.isPinned,
    can_sleep: status.canSleep,
    device: status.device ?? null,
    device_bytes: status.deviceBytes ?? null,
    needed_bytes: status.memory?.bytes ?? 0,
    memory_source: status.memory?.source ?? null,
    measured_bytes: status.memory?.measuredBytes ?? null,
    held_bytes: status.bytes,
    start_ms: status.startsMs,
    ready_in_ms: status.readyInMs ?? null,
    problem: status.problem ?? null,
    last_lines: status.lastLines,
  }
}

function statusView(status: OnDemandStatus) {
  return { lane: status.lane, ...onDemandView(status) }
}
