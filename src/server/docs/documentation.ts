import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { docsPage } from './docs-page.ts'
import { originOf } from './origin.ts'
import { openApiDocument, type ApiDescription } from '../openapi.ts'
import { openRoute, type OpenRoute, type Route } from '../route.ts'

/** The page may load its own style and script and talk to its own origin, nothing else. */
const PAGE_HEADERS = {
  // The page contains the address it was reached by.
  'Cache-Control': 'private, no-cache',
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
}

interface Asset {
  readonly path: string
  /** Its path with a version that changes with its content. */
  readonly address: string
  readonly contentType: string
  readonly content: string
}

const style = asset('docs.css', 'text/css; charset=utf-8')
const script = asset('docs.js', 'text/javascript; charset=utf-8')

/** The OpenAPI document and the docs page of a list of routes. Each is generated once, when it is first requested. */
export function documentationRoutes(api: ApiDescription, routes: readonly Route[]): readonly OpenRoute[] {
  let document: string | undefined
  let pageAt: ReturnType<typeof docsPage> | undefined
  return [
    openRoute(api.documentPath, async (exchange) => {
      document ??= JSON.stringify(openApiDocument(api, routes))
      exchange.sendJson(document)
    }),
    openRoute('/docs', async (exchange) => {
      pageAt ??= docsPage(api, routes, { style: style.address, script: script.address })
      exchange.send(200, 'text/html; charset=utf-8', pageAt(originOf(exchange.request)), PAGE_HEADERS)
    }),
    assetRoute(style),
    assetRoute(script),
  ]
}

function asset(name: string, contentType: string): Asset {
  const content = readFileSync(new URL(`./${name}`, import.meta.url), 'utf8')
  const version = createHash('sha256').update(content).digest('hex').slice(0, 16)
  const path = `/docs/${name}`
  return { path, address: `${path}?v=${version}`, contentType, content }
}

function assetRoute({ path, address, contentType, content }: Asset): OpenRoute {
  return openRoute(path, async (exchange) => {
    // During a rolling release, a browser may ask for another version. It must not be cached under that name.
    const isCurrent = `${path}?${exchange.query}` === address
    exchange.send(200, contentType, content, {
      'Cache-Control': isCurrent ? 'public, max-age=31536000, immutable' : 'no-cache',
      'X-Content-Type-Options': 'nosniff',
    })
  })
}
