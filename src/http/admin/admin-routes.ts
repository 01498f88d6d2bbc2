import type { Store } from '../../ports/store.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'
import { consolePageRoutes } from '../console/console-page.ts'
import { documentationRoutes } from '../documentation.ts'
import { healthRoutes, type Readiness } from '../health.ts'
import type { OpenRoute } from '../route.ts'
import { auditRoutes, type AuditParts } from './audit.ts'
import { catalogRoutes, type CatalogParts } from './catalog.ts'
import { adminDescription } from './description.ts'
import { engineRoutes, type EnginesParts } from './engines.ts'
import { invoiceRoutes, type InvoicesParts } from './invoices.ts'
import { keyRoutes } from './keys.ts'
import { laneLimitsRoutes } from './lane-limits.ts'
import { metricsRoute } from './metrics.ts'
import { operatorLiveRoute } from './operator-live.ts'
import { operatorSessionRoutes, type OperatorSessionParts } from './operator-session.ts'
import type { OperatorRoute } from './operator-route.ts'
import { priceRoutes, type PricesParts } from './prices.ts'
import { queueRoutes, type QueuesParts } from './queues.ts'
import { replicaRoutes, type ReplicasParts } from './replicas.ts'
import { reconciliationRoute } from './reconciliation.ts'
import { reportRoutes } from './reports.ts'
import { reloadRoutes, type ReloadParts } from './reload.ts'
import { usageRoutes, type UsageParts } from './usage.ts'
import { workspaceRoutes, type WorkspacesParts } from './workspaces.ts'

export interface AdminRouteParts
  extends
    WorkspacesParts,
    PricesParts,
    InvoicesParts,
    ReloadParts,
    AuditParts,
    CatalogParts,
    EnginesParts,
    QueuesParts,
    ReplicasParts,
    Pick<UsageParts, 'refusals'>,
    OperatorSessionParts {
  /** A reader with a connection of its own, so that no report delays the ledger. */
  readonly store: Store
  readonly telemetry: Telemetry
  readiness(): Readiness
}

/** Everything that the operator's listener serves. */
export function adminRoutes(parts: AdminRouteParts): readonly (OpenRoute | OperatorRoute)[] {
  const changing = [
    ...workspaceRoutes(parts),
    ...keyRoutes(parts),
    ...priceRoutes(parts),
    ...usageRoutes(parts),
    ...invoiceRoutes(parts),
    reconciliationRoute(parts),
    ...reloadRoutes(parts),
    ...catalogRoutes(parts),
    ...engineRoutes(parts),
    ...queueRoutes(parts),
    ...replicaRoutes(parts),
    ...laneLimitsRoutes(parts),
    ...reportRoutes(parts),
  ]
  const api = [
    ...changing,
    ...auditRoutes(parts, changing),
    metricsRoute(parts),
    ...healthRoutes(() => parts.readiness()),
  ]
  // The documentation needs no token: a browser could not send one, and it holds nothing but what the source says.
  return [
    ...documentationRoutes(adminDescription, api),
    ...consolePageRoutes('operator', 'Weir operator'),
    ...operatorSessionRoutes(parts),
    operatorLiveRoute(parts),
    ...api,
  ]
}
