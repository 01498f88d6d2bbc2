/** The scheme and authority of a target in absolute form, as clients send it to proxies: `GET http://host/path`. */
const ORIGIN = /^https?:\/\/[^/?]*/i

/** The path and the query of a request. HTTP requires servers to accept both the origin form and the absolute form. */
export function readTarget(target: string): { readonly path: string; readonly query: string } {
  const local = target.startsWith('/') ? target : target.replace(ORIGIN, '')
  const mark = local.indexOf('?')
  const path = mark < 0 ? local : local.slice(0, mark)
  return { path: path || '/', query: mark < 0 ? '' : local.slice(mark + 1) }
}
