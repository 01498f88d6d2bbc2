import { Type } from 'typebox'
import type { DiskSpace } from '../../shared/disk-room.ts'
import { operatorRoute, type OperatorRoute } from '../../server/operator-route.ts'
import { jsonResponse } from '../../server/route.ts'
import type { Readiness } from './health.ts'

/** What the service depends on, as the operator sees it. */

export interface OperatorHealthParts {
  readiness(): Readiness
  /** The disk of the data directory. */
  diskSpace(): Promise<DiskSpace>
}

const healthSchema = Type.Object({
  object: Type.Literal('health'),
  is_ready: Type.Boolean({ description: 'Whether this replica can record usage.' }),
  is_draining: Type.Boolean(),
  engines: Type.Object(
    { up: Type.Integer({ minimum: 0 }), down: Type.Integer({ minimum: 0 }) },
    { description: 'Addresses of engines.' },
  ),
  database: Type.Enum(['up', 'away']),
  coordination: Type.Enum(['alone', 'joined', 'apart', 'stopped'], { description: 'alone: without Redis.' }),
  disk: Type.Object(
    { size_bytes: Type.Integer(), free_bytes: Type.Integer() },
    { description: 'The disk of the data directory.' },
  ),
})

const healthExample = {
  object: 'health',
  is_ready: true,
  is_draining: false,
  engines: { up: 3, down: 0 },
  database: 'up',
  coordination: 'alone',
  disk: { size_bytes: 64_000_000_000, free_bytes: 21_000_000_000 },
}

export function operatorHealthRoute({ readiness, diskSpace }: OperatorHealthParts): OperatorRoute {
  return operatorRoute({
    method: 'GET',
    path: '/admin/v1/health',
    id: 'operatorHealth',
    summary: 'Health in detail',
    description:
      'The state of what the replica that answers depends on. Unlike `GET /readyz` it also answers while the replica is not ready.',
    response: jsonResponse(healthSchema, healthExample),
    errors: [],
    async answer({ exchange }) {
      const { isReady, isDraining, engines, coordination, isDatabaseUp } = readiness()
      const { size, free } = await diskSpace()
      exchange.sendJson(
        JSON.stringify({
          object: 'health',
          is_ready: isReady,
          is_draining: isDraining,
          engines,
          database: isDatabaseUp ? 'up' : 'away',
          coordination,
          disk: { size_bytes: size, free_bytes: free },
        }),
      )
    },
  })
}
