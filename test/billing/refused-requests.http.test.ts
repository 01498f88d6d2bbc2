import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startService } from '../../src/compose.ts'
import { loadConfig } from '../../src/config.ts'
import { chatStage, roomyLimits, stageConfig, type ChatStage } from '../support/chat-stage.ts'
import { rawClient } from '../support/raw-client.ts'
import { eventually, gate } from '../support/waiting.ts'
import { type TestWeir } from '../support/weir.ts'

/** Requests that were refused before an engine had them: counted by code and key, and the newest ones with the reason. */

const SECRET = 'the private words of a prompt'

interface Report {
  readonly unit: string
  readonly times: readonly number[]
  readonly total: number
  readonly codes: readonly { error_code: string; http_status: number; requests: number; series: readonly object[] }[]
  readonly groups: readonly Group[]
  readonly newest: readonly Newest[]
  readonly next: string | null
}

interface Group {
  readonly workspace?: string | null
  readonly key_id: string | null
  readonly error_code: string
  readonly http_status: number
  readonly requests: number
}

interface Newest extends Omit<Group, 'requests'> {
  readonly request_id: string
  readonly at: string
  readonly endpoint: string | null
  readonly model: string | null
  readonly param: string | null
  readonly reason: string
}

async function refusedOf(weir: TestWeir, query = '', key?: string): Promise<Report> {
  const response = await weir.call(`/usage/refused${query}`, key === undefined ? {} : { key })
  assert.equal(response.status, 200, await response.clone().text())
  return (await response.json()) as Report
}

async function refusedOfAll(weir: TestWeir, query = ''): Promise<Report> {
  const response = await weir.admin('GET', `/admin/v1/usage/refused${query}`)
  assert.equal(response.status, 200, await response.clone().text())
  return (await response.json()) as Report
}

const countsOf = (report: Report): Record<string, number> =>
  Object.fromEntries(report.codes.map(({ error_code: code, requests }) => [code, requests]))

async function read(...responses: Promise<Response>[]): Promise<string[]> {
  const ids: string[] = []
  for (const response of await Promise.all(responses)) {
    ids.push(response.headers.get('x-request-id') ?? '')
    await response.text()
  }
  return ids
}

async function keyIdOf({ weir }: ChatStage): Promise<string> {
  const { data } = (await (await weir.admin('GET', '/admin/v1/keys')).json()) as { data: { id: string }[] }
  return data[0]?.id ?? ''
}

describe('[X5] requests that were refused', () => {
  it('are counted by code and key, and kept with the reason, without anything that the caller sent', async (t) => {
    const { opened, open } = gate()
    const limits = { max_concurrent_requests: 1, max_queue_depth: 0 }
    const stage = await chatStage(t, { limits, script: { hold: { afterTokens: 0, until: opened } } })
    const { weir, engine } = stage
    const first = weir.chat({})
    await engine.arrived(1)
    const messages = [{ role: 'user', content: SECRET }]
    await read(
      weir.chat({ messages }),
      weir.chat({ model: SECRET, messages }),
      weir.chat({ temperature: SECRET, messages }),
      weir.chat({ top_k: 5, messages }),
      weir.chat({ messages, max_tokens: 9000 }),
      weir.call(`/${SECRET.replaceAll(' ', '-')}`),
      weir.call('/chat/completions', { method: 'POST', body: SECRET, headers: { 'content-type': 'application/json' } }),
      weir.call('/chat/completions', { method: 'POST', body: SECRET, headers: { 'content-type': 'text/plain' } }),
    )
    open()
    await (await first).text()
    const report = await refusedOf(weir)
    assert.deepEqual(countsOf(report), {
      queue_full: 1,
      model_not_found: 1,
      invalid_type: 1,
      unsupported_parameter: 1,
      invalid_value: 1,
      unknown_url: 1,
      invalid_json: 1,
      unsupported_media_type: 1,
    })
    const keyId = await keyIdOf(stage)
    assert.ok(report.groups.every((it) => it.key_id === keyId && it.requests === 1))
    assert.equal(report.total, 8)
    assert.doesNotMatch(JSON.stringify(report), /private/)
    const kept = (code: string): unknown => {
      const { endpoint, model, http_status, param, reason } = report.newest.find((it) => it.error_code === code)!
      return [http_status, endpoint, model, param, reason]
    }
    const chat = '/chat/completions'
    const model = 'meta/test-8b'
    assert.deepEqual(kept('queue_full'), [
      429,
      chat,
      model,
      'model',
      `The queue of ${model} is full. Try again shortly.`,
    ])
    const noModel = 'There is no such model, or your workspace or key cannot see it.'
    assert.deepEqual(kept('model_not_found'), [404, chat, null, 'model', noModel])
    const wrongType = 'A field has the wrong type.'
    assert.deepEqual(kept('invalid_type'), [400, chat, model, 'temperature', wrongType])
    const [, , , unsupported] = kept('unsupported_parameter') as unknown[]
    assert.ok(unsupported === 'top_k' || unsupported === null)
    assert.deepEqual((kept('invalid_value') as unknown[]).slice(0, 4), [400, chat, model, 'max_tokens'])
    assert.deepEqual(kept('unknown_url'), [404, null, null, null, 'There is no such path.'])
    assert.deepEqual((kept('invalid_json') as unknown[]).slice(0, 4), [400, chat, null, null])
    assert.equal((await weir.ledger()).length, 1)
  })

  it('have no workspace and no key if the key was missing or wrong, and only the operator sees them', async (t) => {
    const { weir } = await chatStage(t)
    const wrong = `weir_${'secretkey'.repeat(4)}`
    await read(weir.chat({}, { key: null }), weir.chat({}, { key: wrong }))
    assert.deepEqual((await refusedOf(weir)).newest, [])
    const report = await refusedOfAll(weir)
    assert.deepEqual(countsOf(report), { missing_api_key: 1, invalid_api_key: 1 })
    for (const it of [...report.groups, ...report.newest]) {
      assert.deepEqual([it.workspace, it.key_id, it.http_status], [null, null, 401])
    }
    assert.doesNotMatch(JSON.stringify(report), /secretkey/)
  })

  it('show the rate limit, with the seconds that are left', async (t) => {
    const { weir } = await chatStage(t, { config: { rate_limit: { requests_per_minute: 1 } } })
    await read(weir.call('/models'))
    await read(weir.call('/models'), weir.chat({}))
    const { codes, newest } = await refusedOfAll(weir)
    assert.deepEqual(
      codes.map((it) => [it.error_code, it.http_status, it.requests]),
      [['rate_limit_exceeded', 429, 2]],
    )
    assert.match(newest[0]?.reason ?? '', /^Too many requests in this minute/)
    assert.deepEqual(new Set(newest.map(({ endpoint }) => endpoint)), new Set(['/models', '/chat/completions']))
  })

  it('show the spend limit, and a model without an engine', async (t) => {
    const { weir } = await chatStage(t)
    await weir.admin('PATCH', '/admin/v1/workspaces/default', { spend_limit: '0.00' })
    await read(weir.chat({}))
    weir.writeConfig(stageConfig([], { model: { serverless: { limits: roomyLimits } } }))
    await read(weir.reload())
    await read(weir.chat({}))
    // Announced only: there is nothing in the catalog that it could run on.
    weir.writeConfig(stageConfig([], { model: { serverless: undefined } }))
    await read(weir.reload())
    await read(weir.chat({ model: 'test-8b' }))
    const { newest } = await refusedOf(weir)
    assert.deepEqual(
      newest.map((it) => [it.error_code, it.http_status, it.model]),
      [
        ['model_not_configured', 503, 'meta/test-8b'],
        ['model_not_configured', 503, 'meta/test-8b'],
        ['spend_limit_exceeded', 402, 'meta/test-8b'],
      ],
    )
    assert.match(newest[2]?.reason ?? '', /spend limit for this month is/)
  })

  it('omit requests with a ledger row, lookups that find nothing, pages and health checks', async (t) => {
    const { weir } = await chatStage(t, { script: { refuse: { status: 500, body: {} } } })
    await read(
      weir.chat({}),
      weir.call('/usage/no-such-request'),
      weir.call(`${weir.service.url}/readyz`),
      weir.call(`${weir.service.url}/console/no-such-file.js`),
      weir.call(`${weir.service.url}/console/api/requests`),
    )
    assert.deepEqual((await refusedOfAll(weir)).codes, [])
  })

  it('are found by their request id, also those that are too long for a stream of /responses', async (t) => {
    const { weir } = await chatStage(t)
    const [short = '', stream = ''] = await read(
      weir.chat({ temperature: 9 }),
      weir.call('/responses', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'meta/test-8b', stream: true, input: 'x '.repeat(40_000) }),
      }),
    )
    const found = async (id: string): Promise<unknown[]> => {
      const { newest } = await refusedOf(weir, `?request_id=${id}`)
      return newest.map((it) => [it.request_id, it.error_code, it.endpoint])
    }
    assert.deepEqual(await found(short), [[short, 'invalid_value', '/chat/completions']])
    assert.deepEqual(await found(stream), [[stream, 'context_length_exceeded', '/responses']])
    assert.deepEqual(await found('nothing'), [])
  })

  it('of one workspace are hidden from others, and filtered by key, code and day', async (t) => {
    const { weir } = await chatStage(t)
    await weir.admin('POST', '/admin/v1/workspaces', { name: 'acme' })
    const made = (await (await weir.admin('POST', '/admin/v1/keys', { workspace: 'acme' })).json()) as {
      id: string
      key: string
    }
    const [own = ''] = await read(weir.chat({ temperature: 9 }), weir.chat({ model: 'none' }))
    await read(weir.chat({ temperature: 9 }, { key: made.key }))
    const acme = await refusedOf(weir, '', made.key)
    assert.deepEqual(countsOf(acme), { invalid_value: 1 })
    assert.deepEqual((await refusedOf(weir, `?request_id=${own}`, made.key)).newest, [])
    assert.deepEqual(countsOf(await refusedOf(weir)), { invalid_value: 1, model_not_found: 1 })
    assert.deepEqual(countsOf(await refusedOf(weir, '?code=model_not_found')), { model_not_found: 1 })
    const all = await refusedOfAll(weir)
    assert.equal(all.total, 3)
    assert.deepEqual(new Set(all.newest.map(({ workspace }) => workspace)), new Set(['default', 'acme']))
    assert.equal((await refusedOfAll(weir, '?workspace=acme')).total, 1)
    assert.equal((await refusedOfAll(weir, `?key=${made.id}`)).total, 1)
    const past = await refusedOfAll(weir, '?from=2026-01-01&to=2026-01-01')
    assert.deepEqual([past.unit, past.total, past.newest.length], ['hour', 0, 0])
    // By model, status and time of day, page by page.
    const { newest: both } = await refusedOf(weir)
    const [later, earlier] = both
    assert.ok(later && earlier)
    const page = await refusedOf(weir, '?limit=1')
    assert.deepEqual([page.newest, page.total], [[later], 2])
    const next = await refusedOf(weir, `?limit=1&before=${page.next}`)
    assert.deepEqual([next.newest, next.next], [[earlier], null])
    assert.deepEqual(
      (await refusedOf(weir, '?status=404')).newest.map(({ http_status }) => http_status),
      [404],
    )
    assert.deepEqual((await refusedOf(weir, '?model=none')).newest, [])
    assert.deepEqual((await refusedOf(weir, `?to=${earlier.at}`)).newest, [])
    const since = await refusedOf(weir, `?from=${later.at}&to=${new Date(Date.parse(later.at) + 1).toISOString()}`)
    assert.ok(since.newest.some(({ request_id: id }) => id === later.request_id))
    for (const query of ['before=x', 'from=noon', 'status=99']) {
      assert.equal((await weir.call(`/usage/refused?${query}`)).status, 400, query)
    }
    assert.equal((await weir.call('/usage/refused?code=nothing')).status, 400)
  })

  it('survive a restart', async (t) => {
    const { weir } = await chatStage(t)
    await read(weir.chat({ temperature: 9 }))
    await weir.service.stop()
    const again = await startService(
      loadConfig({ config: weir.configFile, data: weir.dataDir }, { WEIR_OPERATOR_TOKEN: weir.operatorToken }),
    )
    try {
      const response = await fetch(`${again.url}/api/v1/usage/refused`, {
        headers: { authorization: `Bearer ${weir.key}` },
      })
      assert.deepEqual(countsOf((await response.json()) as Report), { invalid_value: 1 })
    } finally {
      await again.stop()
    }
  })

  it('that arrive by the thousand cost a bounded number of rows', async (t) => {
    const { weir } = await chatStage(t)
    const clients = await Promise.all(Array.from({ length: 40 }, () => rawClient(weir.base)))
    const lines = `GET /api/v1/no-such-path HTTP/1.1\r\nHost: weir\r\nAuthorization: Bearer ${weir.key}\r\n\r\n`
    // A connection may have a hundred requests waiting.
    for (const client of clients) client.send(lines.repeat(50))
    await read(weir.chat({ temperature: 9 }))
    await eventually('all are counted', async () => countsOf(await refusedOf(weir))['unknown_url'] === 2000, 60_000)
    const { newest } = await refusedOf(weir, '?limit=1000')
    assert.deepEqual(newest.map(({ error_code: code }) => code).toSorted(), [
      'invalid_value',
      ...Array.from({ length: 20 }, () => 'unknown_url'),
    ])
    for (const client of clients) client.leave()
  })
})
