import type { Store } from '../../store/store.ts'
import type { Telemetry } from '../../operate/telemetry/telemetry.ts'
import { consolePage } from '../console/console-page.ts'
import { documentationRoutes } from '../docs/documentation.ts'
import { healthRoutes } from '../../operate/routes/health.ts'
import type { OpenRoute } from '../route.ts'
import { alertRoutes, type AlertsParts } from '../../alerts/routes/alerts.ts'
import { auditRoutes, type AuditParts } from '../../operate/audit/routes/audit.ts'
import { operatorBatchRoutes, type OperatorBatchesParts } from '../../batches/routes/operator-batches.ts'
import { catalogRoutes, type CatalogParts } from '../../catalog/routes/catalog.ts'
import { adminDescription } from './admin-description.ts'
import { onDemandRoutes } from '../../engines/routes/on-demand.ts'
import { engineRoutes, type EnginesParts } from '../../engines/routes/engines.ts'
import { invoiceRoutes, type InvoicesParts } from '../../billing/invoices/routes/invoices.ts'
import { keyRoutes } from '../../workspaces/keys/routes/keys.ts'
import { laneLimitsRoutes } from '../../queue/routes/lane-limits.ts'
import { localModelRoutes, type LocalModelsParts } from '../../local-models/routes/local-models.ts'
import { metricsRoute } from '../../operate/routes/metrics.ts'
import { operatorHealthRoute, type OperatorHealthParts } from '../../operate/routes/operator-health.ts'
import { operatorLiveRoute } from '../../queue/routes/operator-live.ts'
import { operatorSessionRoutes, type OperatorSessionParts } from '../../workspaces/sessions/routes/operator-session.ts'
import { operatorSessionsRoutes } from '../../workspaces/sessions/routes/operator-sessions.ts'
import { OPERATOR } from '../../workspaces/sessions/sessions.ts'
import { signInRoutes } from '../../workspaces/sign-in/routes/sign-in.ts'
import type { SignIn } from '../../workspaces/sign-in/sign-in.ts'
import type { OperatorRoute } from '../operator-route.ts'
import { priceRoutes, type PricesParts } from '../../billing/prices/routes/prices.ts'
import { queueRoutes, type QueuesParts } from '../../queue/routes/queues.ts'
import { replicaRoutes, type ReplicasParts } from '../../cluster/routes/replicas.ts'
import { reconciliationRoute } from '../../ledger/reconcile/routes/reconciliation.ts'
import { reportRoutes } from '../../billing/usage/routes/operator-reports.ts'
import { reloadRoutes, type ReloadParts } from '../../operate/routes/reload.ts'
import { usageRoutes, type UsageParts } from '../../billing/usage/routes/operator-usage.ts'
import { workspaceRoutes, type WorkspacesParts } from '../../workspaces/routes/workspaces.ts'

export interface AdminRouteParts
  extends
    WorkspacesParts,
    PricesParts,
    InvoicesParts,
    ReloadParts,
    AlertsParts,
    AuditParts,
    CatalogParts,
    EnginesParts,
    LocalModelsParts,
    QueuesParts,
    OperatorBatchesParts,
    ReplicasParts,
    Pick<UsageParts, 'refusals'>,
    OperatorHealthParts,
    OperatorSessionParts {
  /** undefined: no identity provider is configured. */
  readonly signIn?: SignIn | undefined
  /** A reader with a connection of its own, so that no report delays the ledger. */
  readonly store: Store
  readonly telemetry: Telemetry
  /** Of all workers. */
  readonly metrics: Telemetry['metrics']
}

/** Everything that the operator's listener serves. */
export function adminRoutes(parts: AdminRouteParts): readonly (OpenRoute | OperatorRoute)[] {
  const changing = [
    ...workspaceRoutes(parts),
    ...keyRoutes(parts),
    ...operatorSessionsRoutes(parts),
    ...priceRoutes(parts),
    ...usageRoutes(parts),
    ...invoiceRoutes(parts),
    reconciliationRoute(parts),
    ...alertRoutes(parts),
    ...reloadRoutes(parts),
    ...catalogRoutes(parts),
    ...engineRoutes(parts),
    ...onDemandRoutes(parts),
    ...localModelRoutes(parts),
    ...queueRoutes(parts),
    ...operatorBatchRoutes(parts),
    ...replicaRoutes(parts),
    ...laneLimitsRoutes(parts),
    ...reportRoutes(parts),
    operatorHealthRoute(parts),
  ]
  const api = [
    ...changing,
    ...auditRoutes(parts, changing),
    metricsRoute(parts),
    ...healthRoutes(() => parts.readiness()),
  ]
  const signIn = parts.signIn?.settings.operatorUrl === undefined ? undefined : parts.signIn
  const page = consolePage('operator', 'Weir operator', signIn?.settings.name)
  // The documentation needs no token: a browser could not send one, and it contains nothing that is not in the source.
  return [
    ...documentationRoutes(adminDescription, api),
    ...page.routes,
    ...signInRoutes(signIn, {
      name: 'operator',
      cookies: { session: 'weir_operator', attempt: 'weir_operator_sign_in' },
      page,
      workspaceId: () => undefined,
      open: (person, roles, address) =>
        parts.operatorSessions.open({
          owner: OPERATOR,
          keyHash: null,
          address,
          person: { person, roles, ms: signIn?.settings.sessionMs ?? 0 },
        }),
    }),
    ...operatorSessionRoutes(parts),
    operatorLiveRoute(parts),
    ...api,
  ]
}
