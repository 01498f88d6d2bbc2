import { consolePageRoutes } from '../../console/console-page.ts'
import type { SessionRoute } from '../../console/session-route.ts'
import { openApiDocument } from '../../openapi.ts'
import { openRoute, type OpenRoute } from '../../route.ts'
import { consoleDescription } from './console-description.ts'
import { sessionRoutes, type SessionParts } from './session.ts'

export type ConsoleParts = SessionParts

/** The console of a workspace: its page, and what it needs besides the public API. */
export function consoleRoutes(parts: ConsoleParts): readonly (OpenRoute | SessionRoute)[] {
  const api = consoleApi(parts)
  const document = JSON.stringify(openApiDocument(consoleDescription, api))
  return [
    ...consolePageRoutes('workspace', 'Weir'),
    openRoute(consoleDescription.documentPath, (exchange) => exchange.sendJson(document)),
    ...api,
  ]
}

export function consoleApi(parts: ConsoleParts): readonly (OpenRoute | SessionRoute)[] {
  return [...sessionRoutes(parts)]
}
