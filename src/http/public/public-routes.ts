import { documentationRoutes } from '../documentation.ts'
import { healthRoutes, type Readiness } from '../health.ts'
import { openRoute, type OpenRoute } from '../route.ts'
import type { SessionRoute } from '../console/session-route.ts'
import { audioRoutes, type AudioParts } from './audio.ts'
import { consoleRoutes, type ConsoleParts } from './console/console-routes.ts'
import { publicDescription } from './description.ts'
import { fileRoutes } from './files.ts'
import { invoiceLinesRoute } from './invoice-lines.ts'
import { invoiceRowsRoute, type InvoiceRowsParts } from './invoice-rows.ts'
import { countTokensRoutes } from './count-tokens.ts'
import { inferenceRoutes } from './inference.ts'
import type { InferenceParts } from './json-endpoints.ts'
import type { KeyRoute } from './key-route.ts'
import { modelRoutes, type ModelsParts } from './models.ts'
import { queueStatusRoute, type QueueStatusParts } from './queue-status.ts'
import { ownUsageRoutes, type OwnUsageParts } from './usage.ts'

export interface PublicRouteParts
  extends InferenceParts, AudioParts, ModelsParts, QueueStatusParts, InvoiceRowsParts, OwnUsageParts, ConsoleParts {
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
    ...ownUsageRoutes(parts),
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
