import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { ApiError } from '../../shared/errors.ts'
import type { Exchange } from '../exchange.ts'
import { openRoute, type OpenRoute } from '../route.ts'

/** A console: one page, its script and its style. scripts/build-console.mjs makes the last two from console/. */

export type ConsoleName = 'workspace' | 'operator'

/** The page may run its own script and talk to its own origin, nothing else. Images and recordings may be local. */
const PAGE_HEADERS = {
  'Cache-Control': 'private, no-cache',
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Permissions-Policy': 'microphone=(self), camera=(), geolocation=()',
}

/** Shown before the script has loaded, which then draws the same (console/shared/opening.tsx). */
const OPENING = '<div class="shell"><header class="side"><div class="brand">Weir</div></header></div>'

const BUILT = new URL('../../../node_modules/.cache/weir-console/', import.meta.url)
const types = { js: 'text/javascript; charset=utf-8', css: 'text/css; charset=utf-8' } as const
type Kind = keyof typeof types

interface Asset {
  readonly version: string
  readonly plain: Buffer
  readonly compressed: Buffer
}

/** The console is below /console, whichever of its pages is requested. Its API is below /console/api. */
export function consolePageRoutes(name: ConsoleName, title: string): readonly OpenRoute[] {
  const load = { js: once(() => readAsset(`${name}.js`)), css: once(() => readAsset(`${name}.css`)) }
  const address = (kind: Kind): string => `/console/assets/${name}.${kind}?v=${load[kind]().version}`

  async function sendPage(exchange: Exchange): Promise<void> {
    if (exchange.path.startsWith('/console/api/')) {
      throw new ApiError('unknown_url', `There is nothing at ${exchange.method} ${exchange.path.slice(0, 200)}.`)
    }
    const page = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>${title}</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="${address('css')}">
<script type="module" src="${address('js')}"></script></head>
<body><div id="app">${OPENING}</div><noscript>The console needs JavaScript. The API does not: see /docs.</noscript></body></html>`
    exchange.send(200, 'text/html; charset=utf-8', page, PAGE_HEADERS)
  }

  function sendAsset(exchange: Exchange, kind: Kind): void {
    const { version, plain, compressed } = load[kind]()
    const isCompressed = /\bgzip\b/.test(exchange.request.headers['accept-encoding'] ?? '')
    exchange.send(200, types[kind], isCompressed ? compressed : plain, {
      'Cache-Control': exchange.query === `v=${version}` ? 'public, max-age=31536000, immutable' : 'no-cache',
      'X-Content-Type-Options': 'nosniff',
      Vary: 'Accept-Encoding',
      ...(isCompressed ? { 'Content-Encoding': 'gzip' } : {}),
    })
  }

  return [
    openRoute('/console', sendPage),
    openRoute('/console/{page+}', sendPage),
    openRoute(`/console/assets/${name}.js`, async (exchange) => sendAsset(exchange, 'js')),
    openRoute(`/console/assets/${name}.css`, async (exchange) => sendAsset(exchange, 'css')),
  ]
}

function readAsset(file: string): Asset {
  try {
    const plain = readFileSync(new URL(file, BUILT))
    const version = createHash('sha256').update(plain).digest('hex').slice(0, 16)
    return { version, plain, compressed: gzipSync(plain) }
  } catch (cause) {
    throw new ApiError('service_unavailable', 'The console has not been built. Run npm run build:console.', { cause })
  }
}

/** Computes a value when it is first needed. A failure is not kept. */
function once<Value>(compute: () => Value): () => Value {
  let value: Value | undefined
  return () => (value ??= compute())
}
