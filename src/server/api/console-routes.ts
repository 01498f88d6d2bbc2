import { consolePage } from '../console/console-page.ts'
import type { SessionRoute } from '../console/session-route.ts'
import { openApiDocument } from '../openapi.ts'
import { openRoute, type OpenRoute } from '../route.ts'
import { consoleDescription } from './console-description.ts'
import type { BatchesRouteParts } from '../../batches/routes/batches.ts'
import { consoleBatchRoutes } from '../../batches/routes/console-batches.ts'
import { consoleInvoiceRoutes, type ConsoleInvoicesParts } from '../../billing/invoices/routes/console-invoices.ts'
import { consoleKeyRoutes, type ConsoleKeysParts } from '../../workspaces/keys/routes/console-keys.ts'
import { consoleLiveRoutes, type ConsoleLiveParts } from '../../queue/routes/console-live.ts'
import { publicModelsRoute, type PublicModelsParts } from '../../catalog/routes/console-models.ts'
import { consoleReportRoutes, type ConsoleReportsParts } from '../../billing/usage/routes/console-reports.ts'
import { signInRoutes } from '../../workspaces/sign-in/routes/sign-in.ts'
import type { SignIn } from '../../workspaces/sign-in/sign-in.ts'
import { sessionRoutes, type ConsoleSessionParts } from '../../workspaces/sessions/routes/console-session.ts'

export interface ConsoleParts
  extends
    ConsoleSessionParts,
    ConsoleKeysParts,
    ConsoleReportsParts,
    ConsoleInvoicesParts,
    ConsoleLiveParts,
    BatchesRouteParts,
    PublicModelsParts {
  /** undefined: no identity provider is configured. */
  readonly signIn?: SignIn | undefined
  readonly reader: ConsoleKeysParts['reader'] & ConsoleReportsParts['reader']
}

/** The console of a workspace: its page, and what it needs besides the public API. */
export function consoleRoutes(parts: ConsoleParts): readonly (OpenRoute | SessionRoute)[] {
  const api = [
    ...sessionRoutes(parts),
    ...consoleKeyRoutes(parts),
    ...consoleReportRoutes(parts),
    ...consoleInvoiceRoutes(parts),
    ...consoleBatchRoutes(parts),
    ...consoleLiveRoutes(parts),
    publicModelsRoute(parts),
  ]
  const signIn = parts.signIn?.settings.publicUrl === undefined ? undefined : parts.signIn
  const page = consolePage('workspace', 'Weir', signIn?.settings.name)
  const document = JSON.stringify(openApiDocument(consoleDescription, api))
  return [
    ...page.routes,
    ...signInRoutes(signIn, {
      name: 'workspace',
      cookies: { session: 'weir_session', attempt: 'weir_sign_in' },
      page,
      workspaceId: (name) => parts.accounts.workspaces().find((it) => it.name === name)?.id,
      open: (person, roles, address) =>
        parts.sessions.signInPerson(person, roles, { address, ms: signIn?.settings.sessionMs ?? 0 }),
    }),
    openRoute(consoleDescription.documentPath, async (exchange) => exchange.sendJson(document)),
    ...api,
  ]
}
