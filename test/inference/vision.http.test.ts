import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, beforeEach, describe, it } from 'node:test'
import { isPrivateAddress } from '../../src/delivery/public-address.ts'
import { refusalOf } from '../support/chat-stage.ts'
import { dataUrl, gif, jpeg, png, webp } from '../support/image-samples.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'

const MAX_BYTES = 500_000
const large = png({ more: MAX_BYTES })

let engine: ScriptedEngine
let weir: TestWeir
let images: Server
let host = ''
let asked: string[] = []

/** The files of an image server, by path. */
const shelf: Readonly<Record<string, Buffer>> = {
  '/cat.png': png({ width: 640, height: 480, more: 1000 }),
  '/half.jpg': jpeg({ more: 300_000 }),
  '/wide.gif': gif({ width: 9000 }),
  '/large.png': large,
  '/page.png': Buffer.from('<html>no image, whatever the name says</html>'),
}

before(async () => {
  engine = await scriptedEngine()
  images = createServer((request, response) => {
    asked.push(request.url ?? '')
    const bytes = shelf[request.url ?? '']
    if (request.url === '/slow.png') response.writeHead(200).write(png().subarray(0, 20))
    else if (request.url === '/moved.png') response.writeHead(302, { location: '/cat.png' }).end()
    else if (bytes) response.writeHead(200, { 'content-type': 'text/plain' }).end(bytes)
    else response.writeHead(404).end()
  })
  await new Promise<void>((resolve) => images.listen(0, '127.0.0.1', resolve))
  host = `127.0.0.1:${(images.address() as AddressInfo).port}`
  weir = await startWeir({
    rate_limit: { requests_per_minute: 100_000 },
    images: { allowed_hosts: [host, 'localhost', 'pictures.example'], max_bytes: MAX_BYTES },
    models: [modelEntry([engine.url], { id: 'meta/vision', categories: ['llm', 'vision'], context_length: 100_000 })],
  })
})
after(async () => {
  await weir.stop()
  await engine.close()
  images.closeAllConnections()
  images.close()
})
beforeEach(() => {
  engine.calls.length = 0
  asked = []
})

const PARAM = 'messages[0].content[0].image_url.url'

function look(...urls: readonly string[]): Promise<Response> {
  const content = urls.map((url) => ({ type: 'image_url', image_url: { url } }))
  return weir.chat({ model: 'meta/vision', messages: [{ role: 'user', content }] })
}

/** The images that the engine received. */
async function seenBy(...urls: readonly string[]): Promise<string[]> {
  const response = await look(...urls)
  assert.equal(response.status, 200, await response.text())
  const { body } = engine.calls.at(-1) ?? assert.fail('the engine was not asked')
  const [{ content }] = body['messages'] as [{ content: { image_url: { url: string } }[] }]
  return content.map((part) => part.image_url.url)
}

async function assertRefused(url: string, param: string, message: RegExp, code = 'invalid_value'): Promise<void> {
  const refusal = await refusalOf(await look(url))
  assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, code, param], refusal.message)
  assert.match(refusal.message, message)
  assert.equal(engine.calls.length, 0)
}

describe('an image in a data URL', () => {
  it('[C7] reaches the engine unchanged: png, jpeg, webp and gif', async () => {
    const urls = [
      dataUrl('png', png({ more: 100_000 })),
      dataUrl('jpeg', jpeg({ more: 200_000 })),
      dataUrl('jpg', jpeg()),
      dataUrl('webp', webp()),
      dataUrl('webp', webp({}, 'VP8L')),
      dataUrl('webp', webp({}, 'VP8X')),
      dataUrl('gif', gif()),
    ]
    assert.deepEqual(await seenBy(...urls), urls)
  })

  it('[C7] must have the type it declares', async () => {
    await assertRefused(
      dataUrl('png', jpeg()),
      PARAM,
      /an image\/png as its media type says, but the content is image\/jpeg/,
    )
    await assertRefused(dataUrl('jpeg', webp()), PARAM, /content is image\/webp/)
    await assertRefused(dataUrl('gif', png()), PARAM, /content is image\/png/)
    await assertRefused(dataUrl('png', Buffer.from('%PDF-1.7'.repeat(20))), PARAM, /a png, jpeg, webp or gif/)
    await assertRefused(dataUrl('png', png().subarray(0, 20)), PARAM, /a png, jpeg, webp or gif/)
  })

  it('[C7] must be valid base64 from end to end', async () => {
    const good = dataUrl('png', png({ more: 150_000 }))
    for (const [at, sign] of [
      [100, '-'],
      [70_000, ' '],
      [good.length - 10, '\n'],
      [120_000, '"'],
      [99_999, '='],
      [50_000, 'é'],
    ] as const) {
      await assertRefused(good.slice(0, at) + sign + good.slice(at + 1), PARAM, /valid base64/)
    }
    await assertRefused(good.slice(0, -1), PARAM, /padded base64/)
    await assertRefused('data:image/png;base64,', PARAM, /padded base64/)
  })

  it('[C7] must not exceed the operator’s limits in bytes or pixels', async () => {
    const room = MAX_BYTES - png().length
    assert.equal((await look(dataUrl('png', png({ more: room })))).status, 200)
    engine.calls.length = 0
    await assertRefused(dataUrl('png', png({ more: room + 1 })), PARAM, /at most 500000 bytes/)
    assert.equal((await look(dataUrl('png', png({ width: 8192, height: 8192 })))).status, 200)
    engine.calls.length = 0
    await assertRefused(dataUrl('png', png({ width: 8193 })), PARAM, /at most 8192 pixels a side, not 8193 x 1/)
    await assertRefused(dataUrl('jpeg', jpeg({ height: 65_535 })), PARAM, /not 1 x 65535/)
  })

  it('must have a known type, in base64', async () => {
    for (const url of [
      'data:image/svg+xml;base64,AAAA',
      'data:image/png,AAAA',
      'data:text/html;base64,AAAA',
      'data:image/png;charset=utf-8;base64,AAAA',
      'file:///etc/passwd',
      'ftp://example.com/cat.png',
      'cat.png',
    ]) {
      await assertRefused(url, PARAM, /a data: URL with a png, jpeg, webp or gif in base64/)
    }
  })

  it('[C7] is checked at every position, and an error names that position', async () => {
    const good = dataUrl('png', png())
    const refusal = await refusalOf(await look(good, good, dataUrl('png', gif())))
    assert.equal(refusal.param, 'messages[0].content[2].image_url.url')
  })
})

describe('an image with two URLs', () => {
  it('[C7] is refused, however the second is escaped: an engine might fetch the other one', async () => {
    const inline = JSON.stringify(dataUrl('png', png()))
    const elsewhere = JSON.stringify('http://169.254.169.254/latest/meta-data')
    for (const image of [
      `{"type":"image_url","image_url":{"url":${elsewhere},"url":${inline}}}`,
      `{"type":"image_url","image_url":{"\\u0075rl":${elsewhere},"url":${inline}}}`,
      `{"type":"image_url","image_url":{"url":${elsewhere}},"image_url":{"url":${inline}}}`,
      `{"type":"image_url","image\\u005furl":{"url":${elsewhere}},"image_url":{"url":${inline}}}`,
    ]) {
      const body = `{"model":"meta/vision","messages":[{"role":"user","content":[${image}]}]}`
      const headers = { 'content-type': 'application/json' }
      const refusal = await refusalOf(await weir.call('/chat/completions', { method: 'POST', headers, body }))
      assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'invalid_json', null], image)
      assert.match(refusal.message, /more than once/)
    }
    assert.equal(engine.calls.length, 0)
  })
})

describe('an image given by URL', () => {
  const at = (path: string): string => `http://${host}${path}`
  const where = 'messages[0].content[0]'

  it('[C7] is fetched if the host is allowed, and no engine receives the URL', async () => {
    assert.deepEqual(await seenBy(at('/cat.png'), at('/half.jpg')), [
      dataUrl('png', shelf['/cat.png'] ?? assert.fail()),
      dataUrl('jpeg', shelf['/half.jpg'] ?? assert.fail()),
    ])
    assert.deepEqual(asked.sort(), ['/cat.png', '/half.jpg'])
    assert.ok(!engine.calls[0]?.rawBody.includes(host))
  })

  it('has the same limits as any other image', async () => {
    await assertRefused(at('/wide.gif'), where, /at most 8192 pixels/)
    await assertRefused(at('/page.png'), where, /a png, jpeg, webp or gif/)
    await assertRefused(at('/large.png'), where, /could not be fetched/)
    await assertRefused(at('/none.png'), where, /could not be fetched/)
    await assertRefused(at('/moved.png'), where, /could not be fetched/)
    assert.ok(!asked.includes('/cat.png'), 'no redirect was followed')
  })

  it('counts towards one limit for all images of a request, in bytes and in number', async () => {
    const refusal = await refusalOf(await look(at('/half.jpg'), at('/half.jpg')))
    assert.deepEqual([refusal.status, refusal.code], [400, 'invalid_value'])
    asked = []
    const many = await refusalOf(await look(...Array.from({ length: 17 }, () => at('/cat.png'))))
    assert.deepEqual([many.code, many.param], ['unsupported_content', 'messages[0].content[16]'])
    assert.deepEqual(asked, [])
    assert.equal((await look(...Array.from({ length: 16 }, () => at('/cat.png')))).status, 200)
  })

  it('is not fetched if another one of the request is not allowed', async () => {
    const refusal = await refusalOf(await look(at('/cat.png'), 'https://example.com/cat.png'))
    assert.deepEqual([refusal.code, refusal.param], ['unsupported_content', 'messages[0].content[1]'])
    assert.deepEqual(asked, [])
  })

  it('is allowed on the default port only, unless the operator lists another', async () => {
    for (const url of [
      'http://pictures.example:6379/x',
      'https://pictures.example:8443/x',
      at('/x').replace(/\d+\//, '1/'),
    ]) {
      await assertRefused(url, where, /not allowed/, 'unsupported_content')
    }
  })

  it('is refused when the name resolves to a private address', async () => {
    await assertRefused('http://localhost/cat.png', where, /could not be fetched/)
  })

  it('is aborted when it does not arrive', { timeout: 30_000 }, async () => {
    const started = performance.now()
    await assertRefused(at('/slow.png'), where, /could not be fetched/)
    assert.ok(performance.now() - started < 15_000)
  })
})

describe('private addresses', () => {
  it('are recognized in every notation', () => {
    const inside = `0.0.0.0 10.1.2.3 100.64.0.1 127.0.0.1 169.254.169.254 172.16.0.1 172.31.255.255 192.168.1.1 198.18.0.1
      224.0.0.1 255.255.255.255 :: ::1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::127.0.0.1 64:ff9b::a00:1 64:ff9b:1::1
      2002:a00:1:: 2001:0:a00:1:: fc00::1 fd12::1 fe80::1 fec0::1 ff02::1`
    for (const address of inside.split(/\s+/)) assert.ok(isPrivateAddress(address), address)
    for (const address of ['1.1.1.1', '172.32.0.1', '192.169.0.1', '2606:4700:4700::1111', '::ffff:8.8.8.8']) {
      assert.ok(!isPrivateAddress(address), address)
    }
  })
})
