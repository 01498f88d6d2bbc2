import assert from 'node:assert/strict'
import { existsSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { refusalOf } from '../support/chat-stage.ts'
import { gif, jpeg, png, webp } from '../support/image-samples.ts'
import { rawClient } from '../support/raw-client.ts'
import { s3Secrets, s3Stub, type S3Stub } from '../support/s3-stub.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { eventually, within } from '../support/waiting.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'

const variables = { STORE_KEY: s3Secrets.access, STORE_SECRET: s3Secrets.secret }

function configWith(engine: ScriptedEngine, files: object | undefined): object {
  return {
    rate_limit: { requests_per_minute: 100_000 },
    models: [modelEntry([engine.url], { id: 'sd/images', categories: ['image'], pricing: { per_image: '0.04' } })],
    ...(files ? { files } : {}),
  }
}

function generate(weir: TestWeir, body: object = {}): Promise<Response> {
  return weir.call('/images/generations', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'sd/images', prompt: 'A weir', response_format: 'url', ...body }),
  })
}

async function linksOf(weir: TestWeir, body: object = {}): Promise<string[]> {
  const response = await generate(weir, body)
  const answer = (await response.json()) as { data: { url: string; b64_json?: string }[] }
  assert.equal(response.status, 200, JSON.stringify(answer))
  assert.ok(answer.data.every((item) => item.b64_json === undefined))
  return answer.data.map(({ url }) => url)
}

const open = (url: string, init: RequestInit = {}): Promise<Response> => fetch(url, init)

describe('links to files in the data directory', () => {
  let engine: ScriptedEngine
  let weir: TestWeir
  before(async () => {
    engine = await scriptedEngine()
    weir = await startWeir(configWith(engine, { kind: 'local', link_ttl_seconds: 600, max_bytes: 1_048_576 }))
  })
  after(async () => {
    await weir.stop()
    await engine.close()
  })
  beforeEach(() => (engine.script = {}))

  const kept = (): string[] => readdirSync(join(weir.dataDir, 'files'))

  it('[E7, M3] open the image without a key, and the image is billed', async () => {
    const image = png({ more: 200_000 })
    engine.script = { images: () => [{ b64_json: image.toString('base64'), revised_prompt: 'A fine weir' }] }
    const response = await generate(weir)
    const { data } = (await response.json()) as { data: { url: string; revised_prompt: string }[] }
    const [{ url, revised_prompt: revised } = assert.fail()] = data
    assert.equal(revised, 'A fine weir')
    assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/files\/[0-9a-f]{32}\.png\?expires=\d+&signature=[\w-]{43}$/)
    const file = await open(url)
    assert.equal(file.status, 200)
    assert.deepEqual(Buffer.from(await file.arrayBuffer()), image)
    assert.equal(file.headers.get('content-type'), 'image/png')
    assert.equal(file.headers.get('content-length'), String(image.length))
    assert.equal(file.headers.get('x-content-type-options'), 'nosniff')
    assert.match(file.headers.get('cache-control') ?? '', /^private, max-age=(59\d|600), immutable$/)
    const row = (await weir.ledger()).at(-1)
    assert.deepEqual([row?.images, row?.amount, row?.outcome], [1, 40_000_000_000n, 'completed'])
  })

  it('[R3] carry the rate limit and a request id, as every response does', async () => {
    const [url = ''] = await linksOf(weir)
    for (const address of [url, `${url}x`]) {
      const { headers } = await open(address)
      for (const name of ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset', 'x-request-id']) {
        assert.ok(headers.get(name), name)
      }
    }
  })

  it('have the type of the content, whatever format was requested', async () => {
    const images: [Buffer, string][] = [
      [jpeg(), 'image/jpeg'],
      [webp(), 'image/webp'],
      [gif(), 'image/gif'],
      [Buffer.from('<script>alert(1)</script>'), 'application/octet-stream'],
    ]
    engine.script = { images: () => images.map(([bytes]) => ({ b64_json: bytes.toString('base64') })) }
    const links = await linksOf(weir, { n: 4 })
    for (const [index, url] of links.entries()) {
      const response = await open(url)
      assert.equal(response.headers.get('content-type'), images[index]?.[1])
      assert.deepEqual(Buffer.from(await response.arrayBuffer()), images[index]?.[0])
    }
  })

  it('answer HEAD without the image', async () => {
    const [url = ''] = await linksOf(weir)
    const response = await open(url, { method: 'HEAD' })
    assert.deepEqual([response.status, await response.text()], [200, ''])
    assert.equal(response.headers.get('content-length'), String(png().length))
  })

  it('do not open when any character is changed', async () => {
    const [first = '', second = ''] = await linksOf(weir, { n: 2 })
    const { pathname, searchParams } = new URL(first)
    const [expires, signature] = [Number(searchParams.get('expires')), searchParams.get('signature') ?? '']
    const other = new URL(second).pathname
    for (const path of [
      pathname,
      `${pathname}?expires=${expires}`,
      `${pathname}?signature=${signature}`,
      `${pathname}?expires=${expires + 1}&signature=${signature}`,
      `${pathname}?expires=&signature=${signature}`,
      `${pathname}?expires=${expires}&signature=${signature.slice(0, -2)}AA`,
      `${pathname}?expires=${expires}&signature=é${signature.slice(1)}`,
      `${pathname.replace('.png', '.gif')}?expires=${expires}&signature=${signature}`,
      `${other}?expires=${expires}&signature=${signature}`,
    ]) {
      const refusal = await refusalOf(await open(weir.service.url + path))
      assert.deepEqual([refusal.status, refusal.code, refusal.param], [404, 'not_found', null], path)
    }
    assert.equal((await open(first)).status, 200)
  })

  it('lead to nothing outside the directory', async () => {
    const client = await rawClient(weir.service.url)
    const paths = [
      '/files/',
      '/files/../link-secret',
      '/files/..%2flink-secret',
      '/files/%2e%2e/weir.db',
      '/files//etc/passwd',
    ]
    for (const path of paths) {
      client.send(`GET ${path}?expires=9999999999&signature=x HTTP/1.1\r\nHost: weir\r\n\r\n`)
    }
    await eventually('every path is answered', () => client.received.split('"not_found"').length > paths.length)
    assert.doesNotMatch(client.received, / 200 /)
    client.leave()
  })

  it('are read-only', async () => {
    const [url = ''] = await linksOf(weir)
    assert.equal((await open(url, { method: 'DELETE' })).status, 401)
    assert.equal((await weir.call(url, { method: 'POST' })).status, 404)
  })

  it('are signed with a secret that only the operator can read', () => {
    assert.equal(statSync(join(weir.dataDir, 'link-secret')).mode & 0o777, 0o600)
    assert.equal(statSync(join(weir.dataDir, 'files')).mode & 0o777, 0o700)
    for (const name of kept()) assert.equal(statSync(join(weir.dataDir, 'files', name)).mode & 0o777, 0o600)
  })

  it('of one workspace leave half of the storage to the others', async () => {
    engine.script = { images: () => [{ b64_json: png({ more: 150_000 }).toString('base64') }] }
    const refusals: string[] = []
    // At most three images of this size are half of it.
    for (let count = 0; count < 4; count++) {
      const response = await generate(weir)
      if (response.status !== 200) refusals.push((await refusalOf(response)).message)
    }
    assert.match(refusals[0] ?? '', /^This workspace has used its share of the file storage\./)
    await weir.admin('POST', '/admin/v1/workspaces', { name: 'other' })
    const made = await weir.admin('POST', '/admin/v1/keys', { workspace: 'other' })
    const { key } = (await made.json()) as { key: string }
    await linksOf({ ...weir, call: (path, init) => weir.call(path, { ...init, key }) })
  })

  it('[M3] that cannot be created cost nothing, and the image is withheld', async () => {
    const before = kept().length
    engine.script = { images: () => [{ b64_json: png({ more: 1_048_576 }).toString('base64') }] }
    const full = await refusalOf(await generate(weir))
    assert.deepEqual([full.status, full.code, full.retryAfter], [503, 'service_unavailable', '2'])
    assert.match(full.message, /full/)
    engine.script = { images: () => [{ b64_json: 'no base64' }] }
    assert.equal((await refusalOf(await generate(weir))).code, 'upstream_error')
    const rows = (await weir.ledger()).slice(-2)
    assert.deepEqual(
      rows.map(({ outcome, images, amount }) => [outcome, images, amount]),
      [
        ['engine_failed', 0, 0n],
        ['engine_failed', 0, 0n],
      ],
    )
    assert.equal(kept().length, before)
  })

  it('work again after the directory was not writable for a while', async () => {
    const folder = join(weir.dataDir, 'files')
    // A file in its place stops even root.
    renameSync(folder, `${folder}-aside`)
    writeFileSync(folder, '')
    const refusal = await refusalOf(await generate(weir))
    rmSync(folder)
    renameSync(`${folder}-aside`, folder)
    assert.equal(refusal.code, 'service_unavailable')
    assert.equal((await linksOf(weir)).length, 1)
  })
})

describe('a link that has expired', () => {
  it('returns an error, and its file is deleted', async (t) => {
    const engine = await scriptedEngine()
    const weir = await startWeir(configWith(engine, { kind: 'local', link_ttl_seconds: 1 }))
    t.after(async () => {
      await weir.stop()
      await engine.close()
    })
    const [url = ''] = await linksOf(weir)
    const name = new URL(url).pathname.split('/').at(-1) ?? ''
    await sleep(1100)
    const refusal = await refusalOf(await open(url))
    assert.deepEqual([refusal.status, refusal.code], [404, 'not_found'])
    assert.match(refusal.message, /expired/)
    await eventually('the file is gone', () => !existsSync(join(weir.dataDir, 'files', name)))
  })
})

describe('links under another address', () => {
  it('start with the configured public URL', async (t) => {
    const engine = await scriptedEngine()
    const weir = await startWeir(configWith(engine, { kind: 'local', public_url: 'https://img.example.com/weir/' }))
    t.after(async () => {
      await weir.stop()
      await engine.close()
    })
    const [url = ''] = await linksOf(weir)
    assert.ok(url.startsWith('https://img.example.com/weir/files/'))
    const here = url.replace('https://img.example.com/weir', weir.service.url)
    assert.equal((await open(here)).status, 200)
  })
})

describe('a file that is being fetched while the service stops', () => {
  it('arrives completely, and then does not delay the stop', async (t) => {
    const engine = await scriptedEngine()
    const weir = await startWeir(configWith(engine, { kind: 'local' }))
    t.after(() => engine.close())
    const [url = ''] = await linksOf(weir)
    const file = await open(url)
    const stopped = weir.stop()
    assert.equal((await file.arrayBuffer()).byteLength, Number(file.headers.get('content-length')))
    await within(10_000, 'the service stops', stopped)
  })
})

describe('without file storage', () => {
  it('a request for a link is refused before any work is done, and no file is served', async (t) => {
    const engine = await scriptedEngine()
    const weir = await startWeir(configWith(engine, undefined))
    t.after(async () => {
      await weir.stop()
      await engine.close()
    })
    const refusal = await refusalOf(await generate(weir))
    assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'unsupported_value', 'response_format'])
    assert.equal(engine.calls.length, 0)
    assert.equal((await open(`${weir.service.url}/files/x`)).status, 401)
    assert.ok(!existsSync(join(weir.dataDir, 'files')))
  })
})

describe('links to an S3-compatible bucket', () => {
  let engine: ScriptedEngine
  let bucket: S3Stub
  let weir: TestWeir
  before(async () => {
    engine = await scriptedEngine()
    bucket = await s3Stub()
    const files = {
      kind: 's3',
      endpoint: bucket.url,
      bucket: 'pictures',
      region: s3Secrets.region,
      access_key_env: 'STORE_KEY',
      secret_key_env: 'STORE_SECRET',
      prefix: 'weir/made/',
      link_ttl_seconds: 60,
    }
    weir = await startWeir(configWith(engine, files), variables)
  })
  after(async () => {
    await weir.stop()
    await engine.close()
    await bucket.close()
  })
  beforeEach(() => {
    engine.script = {}
    bucket.laterMs = 0
  })

  it('[E7, M3] have the image stored with a valid signature before the answer is sent', async () => {
    const image = jpeg({ more: 100_000 })
    engine.script = { images: () => [{ b64_json: image.toString('base64') }] }
    const [url = ''] = await linksOf(weir)
    assert.deepEqual(bucket.refused, [])
    const { pathname } = new URL(url)
    assert.match(pathname, /^\/pictures\/weir\/made\/[0-9a-f]{32}\.jpg$/)
    assert.deepEqual(bucket.objects.get(pathname), { bytes: image, contentType: 'image/jpeg' })
    const response = await open(url)
    assert.equal(response.status, 200)
    assert.deepEqual(Buffer.from(await response.arrayBuffer()), image)
    assert.equal((await weir.ledger()).at(-1)?.images, 1)
  })

  it('open until they expire, and only their own object', async () => {
    const [url = ''] = await linksOf(weir)
    assert.equal((await open(url.replace(/\/[0-9a-f]{4}/, '/0000'))).status, 403)
    assert.equal((await open(url.replace('Expires=60', 'Expires=90'))).status, 403)
    bucket.laterMs = 61_000
    assert.equal((await open(url)).status, 403)
    assert.deepEqual(bucket.refused.splice(0), ['wrong signature', 'wrong signature', 'expired'])
  })

  it('are retried when the storage fails once', async () => {
    bucket.failures.push(503)
    assert.equal((await linksOf(weir)).length, 1)
  })

  it('[M3] cost nothing when the storage fails, and its message is not shown', async () => {
    bucket.failures.push(503, 403)
    const refusal = await refusalOf(await generate(weir))
    assert.deepEqual([refusal.status, refusal.code], [503, 'service_unavailable'])
    assert.doesNotMatch(refusal.message, /403|SlowDown|pictures/)
    const row = (await weir.ledger()).at(-1)
    assert.deepEqual([row?.outcome, row?.images, row?.amount], ['engine_failed', 0, 0n])
  })

  it('serve nothing from the data directory', async () => {
    assert.equal((await open(`${weir.service.url}/files/x`)).status, 401)
  })
})
