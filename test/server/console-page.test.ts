import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { consolePage } from '../../src/server/console/console-page.ts'
import { documentationRoutes } from '../../src/server/docs/documentation.ts'
import { publicDescription } from '../../src/server/api/public-description.ts'
import { ask, exchangeFor } from '../support/route-answer.ts'

/** The address of a file that the page loads. */
const addressIn = (page: string, file: RegExp): string => new RegExp(`"(/[^"]*${file.source}[^"]*)"`).exec(page)![1]!
const forever = 'public, max-age=31536000, immutable'

describe('the page of a console', () => {
  const page = consolePage('workspace', 'Weir & co', 'Acme "SSO"')

  it('is the same at each of its addresses, and may load nothing from elsewhere', async () => {
    const { status, headers, text } = await ask(page.routes, 'GET /console')
    assert.equal(status, 200)
    assert.deepEqual((await ask(page.routes, 'GET /console/keys/new')).text, text)
    assert.match(text, /<body><div id="app" data-provider="Acme &#34;SSO&#34;">/)
    const { 'Content-Security-Policy': policy = '', 'X-Request-Id': _id, 'Content-Length': _length, ...rest } = headers
    for (const rule of ["default-src 'none'", "script-src 'self'", "form-action 'none'", "frame-ancestors 'none'"])
      assert.ok(policy.includes(rule), rule)
    assert.deepEqual(rest, {
      'Content-Type': 'text/html; charset=utf-8',
      'Cache-Control': 'private, no-cache',
      'Referrer-Policy': 'no-referrer',
      'X-Content-Type-Options': 'nosniff',
      'Cross-Origin-Opener-Policy': 'same-origin',
      'Permissions-Policy': 'microphone=(self), camera=(), geolocation=()',
    })
  })

  it('is not the answer to an unknown address of the API', async () => {
    const message = 'There is nothing at GET /console/api/none.'
    await assert.rejects(ask(page.routes, 'GET /console/api/none'), { code: 'unknown_url', message })
  })

  it('names why someone could not sign in, and is then not stored', () => {
    const { exchange, answered } = exchangeFor('GET /console')
    page.send(exchange, 403, 'No <role>.', { 'Set-Cookie': 'a=b' })
    assert.equal(answered.status, 403)
    assert.match(answered.text, /data-problem="No &#60;role&#62;\."/)
    assert.deepEqual(
      ['Cache-Control', 'Set-Cookie', 'Referrer-Policy'].map((name) => answered.headers[name]),
      ['no-store', 'a=b', 'no-referrer'],
    )
  })

  it('has files that browsers keep by their version, compressed if the browser accepts that', async () => {
    const { text } = await ask(page.routes, 'GET /console')
    const script = addressIn(text, /workspace\.js/)
    const plain = await ask(page.routes, `GET ${script}`)
    const { 'X-Request-Id': _id, 'Content-Length': length, ...headers } = plain.headers
    assert.equal(Number(length), Buffer.byteLength(plain.text))
    assert.deepEqual(headers, {
      'Content-Type': 'text/javascript; charset=utf-8',
      'Cache-Control': forever,
      'X-Content-Type-Options': 'nosniff',
      Vary: 'Accept-Encoding',
    })
    const style = await ask(page.routes, `GET ${addressIn(text, /workspace\.css/)}`)
    assert.equal(style.headers['Content-Type'], 'text/css; charset=utf-8')
    const compressed = await ask(page.routes, `GET ${script}`, { headers: { 'accept-encoding': 'br, gzip' } })
    assert.equal(compressed.headers['Content-Encoding'], 'gzip')
    assert.equal(gunzipSync(compressed.bytes).toString(), plain.text)
  })

  it('has files that browsers check again if they may belong to another version', async () => {
    const cached = async (address: string) => (await ask(page.routes, `GET ${address}`)).headers['Cache-Control']
    assert.equal(await cached('/console/assets/workspace.js?v=other'), 'no-cache')
    assert.equal(await cached('/console/assets/workspace.js'), 'no-cache')
    const { text } = await ask(page.routes, 'GET /console')
    // Its name changes with its content.
    assert.equal(await cached(addressIn(text, /chunk-/)), forever)
    await assert.rejects(ask(page.routes, 'GET /console/assets/none.js'), { code: 'unknown_url' })
  })

  it('has the files of the theme', async () => {
    const { text } = await ask(page.routes, 'GET /console')
    for (const [file, type] of [
      [/mark\.svg\?/, 'image/svg+xml'],
      [/scheme\.js/, 'text/javascript; charset=utf-8'],
    ] as const) {
      const address = addressIn(text, file)
      const current = await ask(page.routes, `GET ${address}`)
      assert.deepEqual(
        ['Content-Type', 'Cache-Control', 'X-Content-Type-Options'].map((name) => current.headers[name]),
        [type, forever, 'nosniff'],
      )
      const other = await ask(page.routes, `GET ${address.split('?')[0]}`)
      assert.deepEqual([other.text, other.headers['Cache-Control']], [current.text, 'no-cache'])
    }
  })
})

describe('the documentation', () => {
  it('is a page with the address that it was reached by, which no cache shares', async () => {
    const routes = documentationRoutes(publicDescription, [])
    const at = (host: string) => ask(routes, 'GET /docs', { headers: { host, 'x-forwarded-proto': 'https' } })
    const { text, headers } = await at('weir.test')
    assert.ok(text.includes('https://weir.test') && !text.includes('https://other.test'))
    assert.ok((await at('other.test')).text.includes('https://other.test'))
    const { 'Content-Security-Policy': policy = '', 'X-Request-Id': _id, 'Content-Length': _length, ...rest } = headers
    for (const rule of ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"])
      assert.ok(policy.includes(rule), rule)
    assert.deepEqual(rest, {
      'Content-Type': 'text/html; charset=utf-8',
      'Cache-Control': 'private, no-cache',
      'Referrer-Policy': 'no-referrer',
      'X-Content-Type-Options': 'nosniff',
    })
    for (const [file, type] of [
      [/docs\.css/, 'text/css; charset=utf-8'],
      [/docs\.js/, 'text/javascript; charset=utf-8'],
    ] as const) {
      assert.equal((await ask(routes, `GET ${addressIn(text, file)}`)).headers['Content-Type'], type)
    }
  })
})
