import { request } from 'undici'
import { HttpStatusError, dispatcherFor } from './download.ts'
import type { PackageIndex } from './pip-configuration.ts'

const MAX_PAGE_BYTES = 8 * 1024 * 1024
const ACCEPT = 'application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1'

/** Asks the index for the URL of a wheel. Indexes answer as JSON or as HTML. */
export async function wheelAddress(packageName: string, fileName: string, index: PackageIndex): Promise<string> {
  const page = new URL(`${packageName.toLowerCase().replaceAll(/[-_.]+/g, '-')}/`, index.url)
  const { statusCode, headers, body } = await request(page, {
    dispatcher: dispatcherFor(index.certificates),
    headers: { ...index.headers, accept: ACCEPT },
  })
  if (statusCode !== 200) {
    await body.dump()
    throw new HttpStatusError(statusCode, page.href)
  }
  const text = await readPage(body)
  const isJson = String(headers['content-type']).includes('json')
  const link = isJson ? linkInJson(text, fileName) : linkInHtml(text, fileName)
  if (link === undefined) throw new Error(`${page.host} has no ${fileName}`)
  const address = new URL(link, page)
  address.hash = ''
  return address.href
}

async function readPage(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > MAX_PAGE_BYTES) throw new Error('the package index answered with more than 8 MiB')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function linkInJson(text: string, fileName: string): string | undefined {
  const { files } = JSON.parse(text) as { files?: readonly { filename?: string; url?: string }[] }
  return files?.find((file) => file.filename === fileName)?.url
}

/** The last part of the path is the name of the file. */
function linkInHtml(text: string, fileName: string): string | undefined {
  for (const [, link = ''] of text.matchAll(/<a\s[^<>]*?href\s*=\s*["']([^"']+)["']/gi)) {
    const address = link.replaceAll('&amp;', '&')
    if (address.split(/[?#]/, 1)[0]?.split('/').at(-1) === fileName) return address
  }
  return undefined
}
