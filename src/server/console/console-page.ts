import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { ApiError } from '../../shared/errors.ts'
import { escapeHtml } from '../../shared/html.ts'
import type { Exchange } from '../exchange.ts'
import { themeHead, themeRoutes, markImage } from '../theme/theme.ts'
import { openRoute, type OpenRoute } from '../route.ts'

/** A console: one page, its style, its script, and scripts that load later. scripts/build-console.mjs makes them from console/. */

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
const OPENING = `<div class="shell"><header class="side"><div class="side-head"><div class="brand">${markImage}Weir</div></div></header></div>`

const BUILT = new URL('../../../node_modules/.cache/weir-console/', import.meta.url)

interface Asset {
  readonly type: string
  readonly version: string
  readonly plain: Buffer
  readonly compressed: Buffer
}

export interface ConsolePage {
  readonly routes: readonly OpenRoute[]
  /** Sends the page where people sign in, with why they could not. */
  send(exchange: Exchange, status: number, problem: string, headers: Record<string, string>): void
}

/**
 * The console is below /console, whichever of its pages is requested. Its API is below /console/api. `provider` is the
 * name of the identity provider that people can sign in with.
 */
export function consolePage(name: ConsoleName, title: string, provider: string | undefined): ConsolePage {
  // All at once, so that they fit together: a new build replaces them.
  const assets = once(() => readAssets(name))
  const address = (file: string): string => `/console/assets/${file}?v=${assets().get(file)?.version}`

  async function sendPage(exchange: Exchange): Promise<void> {
    if (exchange.path.startsWith('/console/api/')) {
      throw new ApiError('unknown_url', `There is nothing at ${exchange.method} ${exchange.path.slice(0, 200)}.`)
    }
    exchange.send(200, 'text/html; charset=utf-8', pageWith(undefined), PAGE_HEADERS)
  }

  function pageWith(problem: string | undefined): string {
    return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>${themeHead}
<link rel="stylesheet" href="${address(`${name}.css`)}">
${sharedBy(assets())}<script type="module" src="${address(`${name}.js`)}"></script></head>
<body><div id="app"${data('provider', provider)}${data('problem', problem)}>${OPENING}</div><noscript>The console needs JavaScript. The API does not: see /docs.</noscript></body></html>`
  }

  async function sendAsset(exchange: Exchange, { file }: { readonly file: string }): Promise<void> {
    const asset = assets().get(file)
    if (!asset) throw new ApiError('unknown_url', 'The console has no such file.')
    const { type, version, plain, compressed } = asset
    const isCompressed = /\bgzip\b/.test(exchange.request.headers['accept-encoding'] ?? '')
    // Files that load later have a hash in their name.
    const isFixed = exchange.query === `v=${version}` || !file.startsWith(`${name}.`)
    exchange.send(200, type, isCompressed ? compressed : plain, {
      'Cache-Control': isFixed ? 'public, max-age=31536000, immutable' : 'no-cache',
      'X-Content-Type-Options': 'nosniff',
      Vary: 'Accept-Encoding',
      ...(isCompressed ? { 'Content-Encoding': 'gzip' } : {}),
    })
  }

  return {
    routes: [
      ...themeRoutes,
      openRoute('/console', sendPage),
      openRoute('/console/{page+}', sendPage),
      openRoute('/console/assets/{file}', sendAsset),
    ],
    send: (exchange, status, problem, headers) =>
      exchange.send(status, 'text/html; charset=utf-8', pageWith(problem), {
        ...PAGE_HEADERS,
        'Cache-Control': 'no-store',
        ...headers,
      }),
  }
}

/** An attribute that the script reads. */
function data(name: string, value: string | undefined): string {
  return value === undefined ? '' : ` data-${name}="${escapeHtml(value)}"`
}

function readAssets(name: ConsoleName): ReadonlyMap<string, Asset> {
  try {
    const folder = new URL(`${name}/`, BUILT)
    return new Map(readdirSync(folder).map((file) => [file, readAsset(new URL(file, folder))]))
  } catch (cause) {
    throw new ApiError('service_unavailable', 'The console has not been built. Run npm run build:console.', { cause })
  }
}

/** What the script has in common with scripts that load later is a file that it imports. The browser fetches both at once. */
function sharedBy(assets: ReadonlyMap<string, Asset>): string {
  const shared = [...assets.keys()].filter((file) => file.startsWith('chunk-'))
  return shared.map((file) => `<link rel="modulepreload" href="/console/assets/${file}">`).join('')
}

function readAsset(file: URL): Asset {
  const plain = readFileSync(file)
  const version = createHash('sha256').update(plain).digest('hex').slice(0, 16)
  const kind = file.pathname.endsWith('.css') ? 'css' : 'javascript'
  return { type: `text/${kind}; charset=utf-8`, version, plain, compressed: gzipSync(plain) }
}

/** Computes a value when it is first needed. A failure is not kept. */
function once<Value>(compute: () => Value): () => Value {
  let value: Value | undefined
  return () => (value ??= compute())
}
