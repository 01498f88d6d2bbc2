import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { openRoute, type OpenRoute } from '../route.ts'

/** What the pages of both listeners share: the mark, the switch between light and dark, and the tokens of the style. */

export interface PageFile {
  readonly path: string
  /** Its path with a version that changes with its content. */
  readonly address: string
  readonly contentType: string
  readonly content: string
}

export function pageFile(path: string, contentType: string, content: string): PageFile {
  const version = createHash('sha256').update(content).digest('hex').slice(0, 16)
  return { path, address: `${path}?v=${version}`, contentType, content }
}

export function pageFileRoute({ path, address, contentType, content }: PageFile): OpenRoute {
  return openRoute(path, async (exchange) => {
    // During a rolling release, a browser may ask for another version. It must not be cached under that name.
    const isCurrent = `${path}?${exchange.query}` === address
    exchange.send(200, contentType, content, {
      'Cache-Control': isCurrent ? 'public, max-age=31536000, immutable' : 'no-cache',
      'X-Content-Type-Options': 'nosniff',
    })
  })
}

const read = (name: string): string => readFileSync(new URL(`./${name}`, import.meta.url), 'utf8')

export const tokens = read('tokens.css')

const mark = pageFile('/theme/mark.svg', 'image/svg+xml', read('mark.svg'))
const scheme = pageFile('/theme/scheme.js', 'text/javascript; charset=utf-8', read('scheme.js'))

export const themeRoutes: readonly OpenRoute[] = [pageFileRoute(mark), pageFileRoute(scheme)]

/** In the head of every page, before its style. The script has to run before the first paint. */
export const themeHead = `<meta name="color-scheme" content="light dark"><link rel="icon" type="image/svg+xml" href="${mark.address}"><script src="${scheme.address}"></script>`

export const markImage = '<img class="mark" src="/theme/mark.svg" alt="" width="32" height="32">'
