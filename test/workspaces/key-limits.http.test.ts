import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { parseAud } from '../../src/shared/money/money.ts'
import { commandLine } from '../support/command-line.ts'
import { roomInThisMinute } from '../support/minute.ts'
import { eventually } from '../support/waiting.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'

interface MadeKey {
  readonly id: string
  readonly key: string
}

interface Spend {
  readonly limit: string
  readonly spent: string
  readonly remaining: string
  readonly resets_at: string
}

interface OwnKey {
  readonly id: string
  readonly name: string
  readonly workspace: string
  readonly expires_at: string | null
  readonly allowed_models: readonly string[] | null
  readonly allowed_endpoints: readonly string[] | null
  readonly allowed_addresses: readonly string[] | null
  readonly requests_per_minute: { readonly limit: number; readonly used: number; readonly remaining: number } | null
  readonly spend_per_day: Spend | null
  readonly spend_per_month: Spend | null
  readonly workspace_limits: {
    readonly requests_per_minute: { readonly limit: number }
    readonly spend_per_month: (Spend & { readonly kind: string }) | null
  }
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
    const { error } = (await refused.json()) as { error: { message: string } }
    assert.match(error.message, /^Too many requests in this minute: this API key may send 2\. Try again in \d+ s\.$/)
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

describe('GET /key', () => {
  it('shows what the key may do, its limits and those of its workspace, and what is left', async () => {
    await roomInThisMinute()
    const { id, key } = await makeKey({
      requests_per_minute: 7,
      spend_per_day: '2.00',
      spend_per_month: '0',
      allowed_models: ['other'],
      allowed_endpoints: ['/rerank'],
      expires_at: '2126-06-30',
    })
    await weir.call('/models', { key })
    const shown = (await (await weir.call('/key', { key })).json()) as OwnKey
    const { limit, used, remaining } = shown.requests_per_minute!
    assert.deepEqual([limit, used, remaining], [7, 2, 5])
    assert.deepEqual([shown.id, shown.name, shown.workspace], [id, 'limited', 'default'])
    assert.deepEqual(
      [shown.allowed_models, shown.allowed_endpoints, shown.allowed_addresses],
      [['other'], ['/rerank'], null],
    )
    assert.equal(shown.expires_at, '2126-06-30T14:00:00.000Z')
    assert.deepEqual([shown.spend_per_day?.spent, shown.spend_per_day?.remaining], ['0.00', '2.00'])
    assert.equal(shown.spend_per_month?.remaining, '0.00', 'it also answers a key without anything left')
    assert.ok(Date.parse(shown.spend_per_day!.resets_at) <= Date.parse(shown.spend_per_month.resets_at))
    assert.deepEqual(
      [shown.workspace_limits.requests_per_minute.limit, shown.workspace_limits.spend_per_month],
      [600, null],
    )
    const other = (await (await weir.call('/key')).json()) as OwnKey
    assert.deepEqual([other.requests_per_minute, other.spend_per_day, other.allowed_models], [null, null, null])
  })

  it('[S1] shows what was spent with the key, beside the limit of the workspace', async () => {
    const { key } = await makeKey({ spend_per_day: '2.00' })
    await weir.admin('PATCH', '/admin/v1/workspaces/default', { spend_limit: '100.00', spend_limit_kind: 'soft' })
    assert.equal(await codeOf(weir.chat({}, { key })), '200')
    const shown = (await (await weir.call('/key', { key })).json()) as OwnKey
    const spent = parseAud(shown.spend_per_day!.spent)!
    assert.ok(spent > 0n)
    assert.equal(parseAud(shown.spend_per_day!.remaining), 2n * 10n ** 12n - spent)
    assert.deepEqual(
      [shown.workspace_limits.spend_per_month?.limit, shown.workspace_limits.spend_per_month?.kind],
      ['100.00', 'soft'],
    )
    await weir.admin('PATCH', '/admin/v1/workspaces/default', { spend_limit: null })
  })
})

describe('/keys for a key that may manage keys', () => {
  const limits = {
    requests_per_minute: 100,
    tokens_per_minute: 100_000,
    spend_per_day: '2.00',
    allowed_models: ['meta/test-8b', 'meta/other'],
    allowed_addresses: ['127.0.0.0/8', '::/0'],
  }
  const ask = (key: string, method: string, path: string, body?: object): Promise<Response> =>
    fetch(`${weir.service.url}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })

  it('is open only to keys with that right', async () => {
    const { key } = await makeKey({})
    for (const [method, path, body] of [
      ['GET', '/keys', undefined],
      ['POST', '/keys', { name: 'new' }],
      ['PATCH', '/keys/key_x', { name: 'new' }],
      ['DELETE', '/keys/key_x', undefined],
    ] as const) {
      assert.equal(await codeOf(ask(key, method, path, body)), '403 key_not_allowed', `${method} ${path}`)
    }
  })

  it('creates keys with the limits of the managing key, or narrower ones, and never wider ones', async () => {
    const manager = await makeKey({ ...limits, manage_keys: true })
    const created = await ask(manager.key, 'POST', '/keys', {
      name: 'made',
      spend_per_day: '1',
      allowed_addresses: ['127.0.0.1'],
    })
    assert.equal(created.status, 201)
    const { id, key } = (await created.json()) as MadeKey
    assert.equal(await codeOf(weir.chat({}, { key })), '200')
    const list = await (await ask(manager.key, 'GET', '/keys')).text()
    assert.ok(!list.includes(key))
    const listed = (JSON.parse(list) as { data: Record<string, unknown>[] }).data.find((it) => it['id'] === id)!
    const inherited = { ...limits, spend_per_day: '1.00', allowed_addresses: ['127.0.0.1'], manage_keys: false }
    assert.deepEqual({ ...listed, ...inherited }, listed)
    for (const wider of [
      { requests_per_minute: 101 },
      { requests_per_minute: null },
      { tokens_per_minute: 100_001 },
      { tokens_per_minute: null },
      { spend_per_day: '2.01' },
      { allowed_models: ['other'] },
      { allowed_models: null },
      { allowed_addresses: ['126.0.0.0/7'] },
      { allowed_addresses: ['10.0.0.1'] },
    ]) {
      const what = JSON.stringify(wider)
      assert.equal(
        await codeOf(ask(manager.key, 'POST', '/keys', { name: 'new', ...wider })),
        '403 key_not_allowed',
        what,
      )
      assert.equal(await codeOf(ask(manager.key, 'PATCH', `/keys/${id}`, wider)), '403 key_not_allowed', what)
    }
    assert.equal(await codeOf(ask(key, 'GET', '/keys')), '403 key_not_allowed')
    assert.equal(await codeOf(ask(manager.key, 'PATCH', `/keys/${id}`, { manage_keys: true })), '200')
    assert.equal(await codeOf(ask(key, 'GET', '/keys')), '200')
  })

  it('[S1] gives each key its limits to itself: what its manager and other keys spend is not counted', async () => {
    const manager = await makeKey({ spend_per_day: '2.00', manage_keys: true })
    const left = async (key: string): Promise<string | undefined> =>
      ((await (await weir.call('/key', { key })).json()) as OwnKey).spend_per_day?.remaining
    const made: string[] = []
    for (const name of ['first', 'second']) {
      const created = await ask(manager.key, 'POST', '/keys', { name })
      made.push(((await created.json()) as MadeKey).key)
    }
    for (const key of [manager.key, made[0]!]) assert.equal(await codeOf(weir.chat({}, { key })), '200')
    const spent = await left(manager.key)
    assert.ok(Number(spent) < 2)
    assert.deepEqual([await left(made[0]!), await left(made[1]!)], [spent, '2.00'])
  })

  it('changes and revokes keys that may do no more, which the audit log attributes to the managing key', async () => {
    const manager = await makeKey({ ...limits, manage_keys: true, name: 'robot' })
    const { id, key } = (await (await ask(manager.key, 'POST', '/keys', { name: 'made' })).json()) as MadeKey
    assert.equal(await codeOf(ask(manager.key, 'PATCH', `/keys/${id}`, { spend_per_day: '0' })), '200')
    assert.equal(await codeOf(weir.chat({}, { key })), '402 spend_limit_exceeded')
    assert.equal(await codeOf(ask(manager.key, 'DELETE', `/keys/${id}`)), '200')
    assert.equal(await codeOf(weir.call('/models', { key })), '401 invalid_api_key')
    const free = await makeKey({})
    assert.equal(await codeOf(ask(manager.key, 'DELETE', `/keys/${free.id}`)), '403 key_not_allowed')
    assert.equal(await codeOf(ask(manager.key, 'PATCH', `/keys/${free.id}`, { name: 'x' })), '403 key_not_allowed')
    assert.equal(await codeOf(ask(manager.key, 'DELETE', '/keys/key_none')), '404 not_found')
    const { data } = (await (await weir.admin('GET', '/admin/v1/audit-log')).json()) as {
      data: { action: string; actor: string }[]
    }
    const own = data.filter(({ actor }) => actor.startsWith('key robot of default from ')).map(({ action }) => action)
    assert.deepEqual(own, ['revokeKey', 'changeKey', 'revokeKey', 'revokeKey', 'changeKey', 'createKey'], 'refused too')
    assert.ok(!JSON.stringify(data).includes(key))
  })
})

describe('the limits of a key', () => {
  const set = {
    requests_per_minute: 5,
    tokens_per_minute: 9000,
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
      { tokens_per_minute: 0 },
      { allowed_models: ['meta/othr'] },
      { spend_per_day: 'much' },
      { spend_per_month: '1000000.01' },
    ]) {
      assert.equal(await codeOf(change(id, { name: 'changed', ...body })), '400 invalid_value', JSON.stringify(body))
    }
    const mistyped = (await (await change(id, { allowed_models: ['meta/OTHER'] })).json()) as {
      error: { message: string }
    }
    assert.match(mistyped.error.message, /"meta\/OTHER", which is no model\. Did you mean meta\/other or other\?/)
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
      '--requests-per-minute 5 --tokens-per-minute 9000 --spend-per-day 0.50 --spend-per-month 12 --models meta/other --endpoints /rerank --addresses 10.0.0.0/8,::1'
    const id = String((await run(`create --workspace default ${limits}`))['id'])
    const mistyped = ['keys', 'set', id, '--models', 'nothing', '--config', weir.configFile, '--data', weir.dataDir]
    assert.match((await commandLine(mistyped)).stderr, /"nothing", which is no model/)
    const renamed = await run(`set ${id} --name renamed`)
    assert.deepEqual({ ...renamed, ...set }, renamed)
    const cleared = await run(
      `set ${id} --requests-per-minute none --tokens-per-minute none --spend-per-day none --spend-per-month none --models any --endpoints any --addresses any`,
    )
    const none = {
      requests_per_minute: null,
      tokens_per_minute: null,
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
    assert.equal(await ask('POST', '/keys', { name: 'free', allowed_models: ['none'] }), '400 invalid_value')
  })
  it('is not opened from an address that the key may not be used from, nor with a key that has expired', async () => {
    const signIn = (key: string): Promise<string> =>
      codeOf(
        fetch(`${weir.service.url}/console/api/session`, {
          method: 'POST',
          headers: { 'x-weir-console': '1', 'content-type': 'application/json' },
          body: JSON.stringify({ key }),
        }),
      )
    assert.equal(await signIn((await makeKey({ allowed_addresses: ['203.0.113.0/24'] })).key), '403 key_not_allowed')
    assert.equal(await signIn((await makeKey({ allowed_addresses: ['127.0.0.1', '::1'] })).key), '200')
    const { key } = await makeKey({ expires_at: new Date(Date.now() + 1500).toISOString() })
    assert.equal(await signIn(key), '200')
    await eventually('it has expired', async () => (await signIn(key)) === '401 invalid_api_key')
  })
})
