import { docsPage } from './docs-page.ts'
import { openApiDocument, type ApiDescription } from './openapi.ts'
import { openRoute, type OpenRoute, type Route } from './route.ts'

/** The OpenAPI document and the docs page of a list of routes. Both are made once, at the start. */
export function documentationRoutes(api: ApiDescription, routes: readonly Route[]): readonly OpenRoute[] {
  const document = JSON.stringify(openApiDocument(api, routes))
  const page = docsPage(api, routes)
  return [
    openRoute(api.documentPath, (exchange) => exchange.sendJson(document)),
    openRoute('/docs', (exchange) => exchange.send(200, 'text/html; charset=utf-8', page)),
  ]
}
