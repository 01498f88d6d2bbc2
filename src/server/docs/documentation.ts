import { readFileSync } from 'node:fs'
import { pageFile, pageFileRoute, tokens } from '../theme/theme.ts'
import { docsPage } from './docs-page.ts'
import { originOf } from './origin.ts'
import { openApiDocument, type ApiDescription } from '../openapi.ts'
import { openRoute, type OpenRoute, type Route } from '../route.ts'

/** The page may load its own style and script and talk to its own origin, nothing else. */
const PAGE_HEADERS = {
  // The page contains the address it was reached by.
  'Cache-Control': 'private, no-cache',
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
}

const read = (name: string): string => readFileSync(new URL(`./${name}`, import.meta.url), 'utf8')

const style = pageFile('/docs/docs.css', 'text/css; charset=utf-8', tokens + read('docs.css'))
const script = pageFile('/docs/docs.js', 'text/javascript; charset=utf-8', read('docs.js'))

/**
 * The OpenAPI document and the docs page of a list of routes. Each is generated for its first reader: they would be a fifth
 * of the work of a start.
 */
export function documentationRoutes(api: ApiDescription, routes: readonly Route[]): readonly OpenRoute[] {
  let document: string | undefined
  let pageAt: ((origin: string) => string) | undefined
  return [
    openRoute(api.documentPath, async (exchange) => {
      document ??= JSON.stringify(openApiDocument(api, routes))
      exchange.sendJson(document)
    }),
    openRoute('/docs', async (exchange) => {
      pageAt ??= docsPage(api, routes, { style: style.address, script: script.address })
      exchange.send(200, 'text/html; charset=utf-8', pageAt(originOf(exchange.request)), PAGE_HEADERS)
    }),
    pageFileRoute(style),
    pageFileRoute(script),
  ]
}
