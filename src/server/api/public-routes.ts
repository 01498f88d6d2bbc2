import { documentationRoutes } from '../docs/documentation.ts'
import { healthRoutes, type Readiness } from '../../operate/routes/health.ts'
import { openRoute, type OpenRoute } from '../route.ts'
import type { SessionRoute } from '../console/session-route.ts'
import { audioRoutes, type AudioParts } from '../../inference/routes/audio.ts'
import { consoleRoutes, type ConsoleParts } from './console-routes.ts'
import { publicDescription } from './public-description.ts'
import { fileRoutes } from '../../inference/routes/files.ts'
import { invoiceLinesRoute } from '../../billing/invoices/routes/invoice-lines.ts'
import { invoiceRowsRoute, type InvoiceRowsParts } from '../../billing/invoices/routes/invoice-rows.ts'
import { countTokensRoutes } from '../../inference/routes/count-tokens.ts'
import { inferenceRoutes } from '../../inference/routes/inference.ts'
import { batchRoutes, type BatchesRouteParts } from '../../batches/routes/batches.ts'
import { batchFileRoutes, type FilesParts } from '../../batches/routes/files.ts'
import type { InferenceParts } from '../../inference/routes/json-endpoints.ts'
import type { KeyRoute } from '../key-route.ts'
import { modelRoutes, type ModelsParts } from '../../catalog/routes/models.ts'
import { queueStatusRoute, type QueueStatusParts } from '../../queue/routes/queue-status.ts'
import { ownKeyRoute, type OwnKeyParts } from '../../workspaces/keys/routes/own-key.ts'
import { managedKeyRoutes, type ManagedKeysParts } from '../../workspaces/keys/routes/managed-keys.ts'
import { ownUsageRoutes, type OwnUsageParts } from '../../billing/usage/routes/usage.ts'

export interface PublicRouteParts
  extends
    InferenceParts,
    AudioParts,
    FilesParts,
    BatchesRouteParts,
    ModelsParts,
    QueueStatusParts,
    InvoiceRowsParts,
    OwnUsageParts,
    OwnKeyParts,
    Pick<ManagedKeysParts, 'audit'>,
    ConsoleParts {
  readonly limits: InferenceParts['limits'] & ConsoleParts['limits']
  readiness(): Readiness
}

/** Everything that the public listener serves. */
export function publicRoutes(parts: PublicRouteParts): readonly (OpenRoute | KeyRoute | SessionRoute)[] {
  const inference = [...inferenceRoutes(parts), ...audioRoutes(parts)]
  const api = [
    ...inference,
    ...countTokensRoutes(parts),
    ...modelRoutes(parts, requestFields(inference)),
    queueStatusRoute(parts),
    ownKeyRoute(parts),
    ...managedKeyRoutes(parts),
    ...ownUsageRoutes(parts),
    ...batchFileRoutes(parts),
    ...batchRoutes(parts),
    invoiceLinesRoute(parts),
    invoiceRowsRoute(parts),
  ]
  return [
    openRoute('/', async (exchange) => exchange.send(302, 'text/plain', '', { Location: '/docs' })),
    ...documentationRoutes(publicDescription, api),
    ...healthRoutes(() => parts.readiness()),
    ...fileRoutes(parts.files),
    ...consoleRoutes(parts),
    ...api,
  ]
}

/** The names of the fields in all request bodies. */
function requestFields(routes: readonly KeyRoute[]): ReadonlySet<string> {
  const schemas = routes.flatMap(({ operation }) => operation?.request?.schema ?? [])
  return new Set(schemas.flatMap((schema) => ('properties' in schema ? Object.keys(schema.properties ?? {}) : [])))
}
