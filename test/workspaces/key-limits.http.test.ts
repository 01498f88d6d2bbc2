import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { commandLine } from '../support/command-line.ts'
import { roomInThisMinute } from '../support/minute.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'

interface MadeKey {
  readonly id: string
  readonly key: string
}

let engine: ScriptedEngine
let weir: TestWeir

before(async () => {
  engine = await scriptedEngine()
  weir = await startWeir({
    models: [modelEntry([engine.url]), modelEntry([engine.url], { id: 'meta/other', aliases: ['other'] })],
  })
})
after(async () => {
  await weir.stop()
  await engine.close()
})

async function makeKey(limits: object): Promise<MadeKey> {
  const response = await weir.admin('POST', '/admin/v1/keys', { workspace: 'default', name: 'limited', ...limits })
  assert.equal(response.status, 201)
  return (await response.json()) as MadeKey
}

async function codeOf(answer: Promise<Response>): Promise<string> {
  const response = await answer
  const { error } = (await response.json()) as { error?: { code: string } }
  return `${response.status}${error ? ` ${error.code}` : ''}`
}

const change = (id: string, body: object): Promise<Response> => weir.admin('PATCH', `/admin/v1/keys/${id}`, body)

async function modelsOf(key: string): Promise<readonly string[]> {
  const { data } = (await (await weir.call('/models', { key })).json()) as { data: { id: string }[] }
  return data.map(({ id }) => id)
}

describe('a key that may call some models', () => {
  it('calls these by slug and alias, lists only these, and gets 403 for others', async () => {
    const { id, key } = await makeKey({ allowed_models: ['test-8b'] })
    assert.equal(await codeOf(weir.chat({ model: 'meta/test-8b' }, { key })), '200')
    assert.equal(await codeOf(weir.chat({ model: 'test-8b' }, { key })), '200')
    for (const model of ['meta/other', 'other']) {
      assert.equal(await codeOf(weir.chat({ model }, { key })), '403 model_access_denied')
    }
    assert.equal(await codeOf(weir.chat({ model: 'meta/none' }, { key })), '404 model_not_found')
    assert.deepEqual(await modelsOf(key), ['meta/test-8b'])
    assert.equal(await codeOf(weir.call('/models/meta/test-8b', { key })), '200')
    assert.equal(await codeOf(weir.call('/models/meta/other', { key })), '404 model_not_found')
    assert.equal(await codeOf(weir.chat({ model: 'meta/other' })), '200', 'other keys are not affected')
    assert.equal((await change(id, { allowed_models: ['meta/other'] })).status, 200)
    assert.equal(await codeOf(weir.chat({ model: 'meta/test-8b' }, { key })), '403 model_access_denied')
    assert.equal((await change(id, { allowed_models: null })).status, 200)
    assert.deepEqual(await modelsOf(key), ['meta/test-8b', 'meta/other'])
  })
})

describe('a key that may call some endpoints', () => {
  it('is refused on others before its body is read, below /v1 as well', async () => {
    const { key } = await makeKey({ allowed_endpoints: ['/chat/completions'] })
    assert.equal(await codeOf(weir.chat({}, { key })), '200')
    for (const path of ['/embeddings', '/responses', '/messages/count_tokens']) {
      assert.equal(await codeOf(weir.call(path, { key, method: 'POST', body: 'no JSON' })), '403 key_not_allowed', path)
    }
    const below = `${weir.service.url}/v1/responses`
    assert.equal(await codeOf(weir.call(below, { key, method: 'POST', body: 'no JSON' })), '403 key_not_allowed')
    assert.deepEqual(await modelsOf(key), ['meta/test-8b', 'meta/other'])
    assert.equal(await codeOf(weir.call('/queue/status', { key })), '200')
  })

  it('lists no models that it cannot call on any of them', async () => {
    assert.deepEqual(await modelsOf((await makeKey({ allowed_endpoints: ['/embeddings'] })).key), [])
    const forms = await makeKey({ allowed_endpoints: ['/messages'] })
    assert.deepEqual(await modelsOf(forms.key), ['meta/test-8b', 'meta/other'])
  })
})

describe('a key that may be used from some addresses', () => {
  it('is refused from others, and then counts by address and not for its workspace', async () => {
    await roomInThisMinute()
    const { id, key } = await makeKey({ allowed_addresses: ['203.0.113.0/24'] })
    const left = async (): Promise<number> => {
      const { headers } = await weir.call('/models')
      return Number(headers.get('x-ratelimit-remaining'))
    }
    const first = await left()
    const refused = await weir.call('/models', { key })
    assert.equal(refused.headers.get('x-spend-limit'), null)
    assert.equal(await codeOf(Promise.resolve(refused)), '403 key_not_allowed')
    assert.equal(await left(), first - 1)
    assert.equal((await change(id, { allowed_addresses: ['203.0.113.0/24', '127.0.0.1'] })).status, 200)
    assert.equal(await codeOf(weir.call('/models', { key })), '200')
  })
})

describe('a key with a rate of its own', () => {
  it('[R1, R2] is refused above it with 429, shows the tighter limit, and leaves room to other keys', async () => {
    await roomInThisMinute()
    const { key } = await makeKey({ requests_per_minute: 2 })
    const ask = async () => {
      const response = await weir.call('/models', { key })
      const { headers } = response
      return [
        await codeOf(Promise.resolve(response)),
        headers.get('x-ratelimit-limit'),
        headers.get('x-ratelimit-remaining'),
      ]
    }
    assert.deepEqual(await ask(), ['200', '2', '1'])
    assert.deepEqual(await ask(), ['200', '2', '0'])
    assert.deepEqual(await ask(), ['429 rate_limit_exceeded', '2', '0'])
    const refused = await weir.call('/models', { key })
    const seconds = Number(refused.headers.get('retry-after'))
    assert.ok(seconds >= 1 && seconds <= 59)
    const other = await weir.call('/models')
    assert.deepEqual([other.status, other.headers.get('x-ratelimit-limit')], [200, '600'])
  })
})

describe('a key with spend limits', () => {
  it('[S1] is refused with 402 and the name of the limit, and leaves other keys alone', async () => {
    for (const [limit, period] of [
      ['spend_per_day', 'day'],
      ['spend_per_month', 'month'],
    ]) {
      const { id, key } = await makeKey({ [limit!]: '0' })
      const response = await weir.chat({}, { key })
      const { error } = (await response.json()) as { error: { code: string; message: string } }
      assert.deepEqual([response.status, error.code], [402, 'spend_limit_exceeded'])
      assert.match(error.message, new RegExp(`^This API key's spend limit for this ${period} is A\\$0.00 .* resets on`))
      assert.equal(await codeOf(weir.call('/models', { key })), '200')
      assert.equal(await codeOf(weir.chat({})), '200')
      assert.equal((await change(id, { [limit!]: '1' })).status, 200)
      assert.equal(await codeOf(weir.chat({}, { key })), '200')
    }
  })
})

describe('the limits of a key', () => {
  const set = {
    requests_per_minute: 5,
    spend_per_day: '0.50',
    spend_per_month: '12.00',
    allowed_models: ['meta/other'],
    allowed_endpoints: ['/rerank'],
    allowed_addresses: ['10.0.0.0/8', '::1'],
  }

  it('are in the list and in the audit log, and stay as they are if they are left out', async () => {
    const { id } = await makeKey(set)
    const changed = (await (await change(id, { name: 'renamed' })).json()) as Record<string, unknown>
    assert.deepEqual({ ...changed, ...set }, changed)
    const { data } = (await (await weir.admin('GET', '/admin/v1/audit-log')).json()) as { data: object[] }
    assert.ok(data.some((entry) => JSON.stringify(entry).includes('10.0.0.0/8')))
  })

  it('are checked: a wrong one is named, and nothing changes', async () => {
    const { id } = await makeKey({})
    for (const body of [
      { allowed_addresses: ['10.0.0.0/40'] },
      { allowed_endpoints: ['/models'] },
      { allowed_models: [] },
      { requests_per_minute: 0 },
      { spend_per_day: 'much' },
      { spend_per_month: '1000000.01' },
    ]) {
      assert.equal(await codeOf(change(id, { name: 'changed', ...body })), '400 invalid_value', JSON.stringify(body))
    }
    const listed = (await (await weir.admin('GET', '/admin/v1/keys')).json()) as {
      data: { id: string; name: string }[]
    }
    assert.equal(listed.data.find((it) => it.id === id)?.name, 'limited')
  })

  it('are set, shown and removed by weir keys', async () => {
    const run = async (line: string) => {
      const options = ['--config', weir.configFile, '--data', weir.dataDir, '--json']
      return (await commandLine(['keys', ...line.split(' '), ...options])).json()
    }
    const limits =
      '--requests-per-minute 5 --spend-per-day 0.50 --spend-per-month 12 --models meta/other --endpoints /rerank --addresses 10.0.0.0/8,::1'
    const id = String((await run(`create --workspace default ${limits}`))['id'])
    const renamed = await run(`set ${id} --name renamed`)
    assert.deepEqual({ ...renamed, ...set }, renamed)
    const cleared = await run(
      `set ${id} --requests-per-minute none --spend-per-day none --spend-per-month none --models any --endpoints any --addresses any`,
    )
    const none = {
      requests_per_minute: null,
      spend_per_day: null,
      spend_per_month: null,
      allowed_models: null,
      allowed_endpoints: null,
      allowed_addresses: null,
    }
    assert.deepEqual({ ...cleared, ...none }, cleared)
  })
})

describe('a session that was opened with a limited key', () => {
  it('cannot create or change keys, which would be a way around the limits', async () => {
    const { id, key } = await makeKey({ requests_per_minute: 1000 })
    const own = { 'x-weir-console': '1', 'content-type': 'application/json' }
    const base = `${weir.service.url}/console/api`
    const signedIn = await fetch(`${base}/session`, { method: 'POST', headers: own, body: JSON.stringify({ key }) })
    const cookie = signedIn.headers.getSetCookie()[0]?.split(';')[0] ?? ''
    const ask = (method: string, path: string, body: object): Promise<string> =>
      codeOf(fetch(base + path, { method, headers: { ...own, cookie }, body: JSON.stringify(body) }))
    assert.equal(await ask('POST', '/keys', { name: 'free' }), '403 key_not_allowed')
    assert.equal(await ask('PATCH', `/keys/${id}`, { requests_per_minute: null }), '403 key_not_allowed')
    assert.equal((await change(id, { requests_per_minute: null })).status, 200)
    assert.equal(await ask('POST', '/keys', { name: 'free' }), '201')
  })
})
