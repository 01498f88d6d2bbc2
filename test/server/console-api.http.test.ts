import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Errors } from 'typebox/schema'
import {
  assertPlainSchemas,
  assertWellFormed,
  operationsOf,
  undocumented,
  type ApiDocument,
} from '../support/openapi.ts'
import { openStore } from '../../src/store/open.ts'
import { sampleRow } from '../support/ledger-samples.ts'
import { addPastUsage } from '../support/past-usage.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { modelEntry, startWeir, withWeir, type TestWeir } from '../support/weir.ts'

let engine: ScriptedEngine
let weir: TestWeir
let document: ApiDocument
let cookie: string
let today: string

before(async () => {
  engine = await scriptedEngine()
  weir = await startWeir({
    rate_limit: { requests_per_minute: 10_000, unauthenticated_per_minute: 10_000 },
    console: { models: 'public' },
    models: [
      modelEntry([engine.url]),
      modelEntry([engine.url], { id: 'meta/hidden', aliases: [], visible_to: ['default'] }),
    ],
  })
  await addPastUsage(weir, { days: 2, rows: 300 })
  document = (await (await fetch(`${weir.service.url}/console/api/openapi.json`)).json()) as ApiDocument
  cookie = await signIn(weir.key)
  today = new Intl.DateTimeFormat('en-CA', { timeZone: 'Australia/Sydney' }).format(new Date())
})
after(async () => {
  await weir.stop()
  await engine.close()
})

async function signIn(key: string): Promise<string> {
  const response = await fetch(`${weir.service.url}/console/api/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-weir-console': '1' },
    body: JSON.stringify({ key }),
  })
  return (response.headers.get('set-cookie') ?? '').split(';')[0] ?? ''
}

function ask(path: string, method = 'GET', body?: object, as = cookie): Promise<Response> {
  return fetch(`${weir.service.url}/console/api${path}`, {
    method,
    headers: { cookie: as, 'x-weir-console': '1', ...(body ? { 'content-type': 'application/json' } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
}

interface Latency {
  readonly requests: number
  readonly of_requests: number
  readonly is_complete: boolean
  readonly buckets: readonly LatencyBucket[]
  readonly groups: readonly { group: string; requests: number; buckets: readonly LatencyBucket[] }[]
}

interface LatencyBucket {
  readonly requests: number
  readonly failed: number
  readonly first_token_ms: { p50: number; p95: number }
  readonly duration_ms: { p50: number; p95: number }
}

const sumOf = (all: readonly { requests: number }[]): number => all.reduce((total, it) => total + it.requests, 0)

describe('the API of the console', () => {
  it('has a document of its own, and answers as documented', async () => {
    assertWellFormed(document)
    assertPlainSchemas(document)
    const paths: Readonly<Record<string, string>> = {
      '/session': '/session',
      '/sessions': '/sessions',
      '/keys': '/keys',
      '/reports/usage': `/reports/usage?from=2026-01-01&to=${today}`.replace('2026-01-01', today),
      '/reports/latency': `/reports/latency?from=${today}&to=${today}`,
      '/reports/month': '/reports/month',
      '/requests': '/requests?limit=3',
      '/invoices': '/invoices',
      '/batches': '/batches',
      '/public-models': '/public-models',
    }
    const reads = operationsOf(document).filter(
      ([method, path]) => method === 'get' && !path.includes('{') && path !== '/live',
    )
    assert.deepEqual(reads.map(([, path]) => path).sort(), Object.keys(paths).sort())
    for (const [, path, operation] of reads) {
      const response = await ask(paths[path] ?? '')
      const body: unknown = await response.json()
      assert.equal(response.status, 200, `${path} ${JSON.stringify(body)}`)
      const schema = operation.responses['200']?.content['application/json']?.schema ?? assert.fail()
      assert.deepEqual(Errors(schema, body)[1], [], path)
      assert.deepEqual(undocumented(schema, body), [], path)
    }
  })

  it('shows models to all visitors only if the operator allows it, and no hidden ones', async () => {
    const open = await fetch(`${weir.service.url}/console/api/public-models`)
    const { data } = (await open.json()) as { data: { id: string; pricing: { per_million_tokens: object } }[] }
    assert.deepEqual(
      data.map(({ id }) => id),
      ['meta/test-8b'],
    )
    await withWeir({ models: [modelEntry([engine.url])] }, async (other) => {
      assert.equal((await fetch(`${other.service.url}/console/api/public-models`)).status, 401)
    })
  })

  it('sums a period so that nothing is missing', async () => {
    const from = new Intl.DateTimeFormat('en-CA', { timeZone: 'Australia/Sydney' }).format(Date.now() - 5 * 86_400_000)
    for (const group of ['model', 'key']) {
      const report = (await (await ask(`/reports/usage?from=${from}&to=${today}&group_by=${group}`)).json()) as {
        unit: string
        total: { requests: number }
        series: { requests: number }[]
        groups: { requests: number; series: { requests: number }[] }[]
      }
      const sum = (all: readonly { requests: number }[]): number => all.reduce((total, it) => total + it.requests, 0)
      assert.equal(report.unit, 'day')
      assert.deepEqual([report.total.requests, sum(report.series), sum(report.groups)], [300, 300, 300])
      for (const it of report.groups) assert.equal(sum(it.series), it.requests)
    }
  })

  it('has times and failures of a whole period, by model and by key, also of a single one', async () => {
    const from = new Intl.DateTimeFormat('en-CA', { timeZone: 'Australia/Sydney' }).format(Date.now() - 5 * 86_400_000)
    const report = async (more: string, as = cookie) =>
      (await (await ask(`/reports/latency?from=${from}&to=${today}${more}`, 'GET', undefined, as)).json()) as Latency
    const whole = await report('')
    assert.deepEqual([whole.requests, whole.of_requests, whole.is_complete], [300, 300, true])
    // Each day of the sample, and each model: nothing is counted twice or lost.
    assert.equal(sumOf(whole.buckets), 300)
    assert.equal(sumOf(whole.groups), 300)
    assert.deepEqual(whole.groups.map(({ group }) => group).toSorted(), [
      'art/images',
      'baai/embed',
      'meta/test-8b',
      'meta/vision',
    ])
    for (const { requests, buckets } of whole.groups) assert.equal(sumOf(buckets), requests)
    const failed = whole.buckets.reduce((sum, it) => sum + it.failed, 0)
    const failedOf = whole.groups.flatMap(({ buckets }) => buckets).reduce((sum, it) => sum + it.failed, 0)
    assert.deepEqual([failed, failedOf], [14, 14], 'every 23rd')
    const [bucket] = whole.groups[0]?.buckets ?? []
    assert.ok(bucket && bucket.duration_ms.p95 >= bucket.duration_ms.p50 && bucket.first_token_ms.p50 > 0)

    const one = await report('&group_by=key&model=baai/embed')
    const ofModel = whole.groups.find(({ group }) => group === 'baai/embed')?.requests
    assert.deepEqual([one.requests, one.of_requests, sumOf(one.groups)], [ofModel, ofModel, ofModel])
    const usage = (await (
      await ask(`/reports/usage?from=${from}&to=${today}&group_by=key&model=baai/embed`)
    ).json()) as { total: { requests: number }; groups: { group: string }[] }
    assert.equal(usage.total.requests, ofModel)
    assert.deepEqual(
      usage.groups.map(({ group }) => group),
      one.groups.map(({ group }) => group),
      'in the same order',
    )
    assert.equal((await report(`&key=${one.groups[0]?.group}`)).requests, 300, 'one key made all of them')
    assert.equal((await report('&key=none')).requests, 0)
  })

  it('samples every day of a period with more requests than it reads, and reports that it did', async () => {
    const busy = await startWeir({ models: [modelEntry([engine.url])] })
    try {
      await addPastUsage(busy, { days: 6, rows: 12_000 })
      const session = await fetch(`${busy.service.url}/console/api/session`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-weir-console': '1' },
        body: JSON.stringify({ key: busy.key }),
      })
      const own = { cookie: (session.headers.get('set-cookie') ?? '').split(';')[0] ?? '' }
      const from = new Intl.DateTimeFormat('en-CA', { timeZone: 'Australia/Sydney' }).format(
        Date.now() - 5 * 86_400_000,
      )
      const url = `${busy.service.url}/console/api/reports/latency?from=${from}&to=${today}`
      const report = (await (await fetch(url, { headers: own })).json()) as Latency
      assert.equal(report.is_complete, false)
      assert.ok(report.requests <= 5000 && report.requests > 2500, `${report.requests}`)
      assert.ok(report.of_requests > 9000, `${report.of_requests}`)
      assert.equal(report.buckets.length, 6, 'every day')
      for (const { requests } of report.buckets.slice(0, -1)) assert.ok(requests > 500, `${requests}`)
    } finally {
      await busy.stop()
    }
  })

  it('finds the few requests of one model among many others', async () => {
    const busy = await startWeir({ models: [modelEntry([engine.url])] })
    try {
      const store = await openStore({ dataDir: busy.dataDir, exclusive: false })
      const [workspace] = await store.workspaces()
      const workspaceId = workspace?.id ?? ''
      // Each is followed by many others in its hour.
      const hours = [20, 50, 90].map((back) => Math.floor(Date.now() / 3_600_000 - back) * 3_600_000)
      const row = (hour: number, index: number, model: string) =>
        sampleRow(`${model}-${hour}-${index}`, { workspaceId, model, settledAt: hour + index * 1000 })
      const common = hours.flatMap((hour) => Array.from({ length: 500 }, (_, index) => row(hour, index + 10, 'common')))
      await store.addRows([...common, ...hours.map((hour) => row(hour, 1, 'rare'))])
      await store.close()
      const session = await fetch(`${busy.service.url}/console/api/session`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-weir-console': '1' },
        body: JSON.stringify({ key: busy.key }),
      })
      const own = { cookie: (session.headers.get('set-cookie') ?? '').split(';')[0] ?? '' }
      const dayOf = new Intl.DateTimeFormat('en-CA', { timeZone: 'Australia/Sydney' })
      for (const days of [6, 90, 399]) {
        const from = dayOf.format(Date.now() - days * 86_400_000)
        const url = `${busy.service.url}/console/api/reports/latency?from=${from}&to=${today}&model=rare`
        const report = (await (await fetch(url, { headers: own })).json()) as Latency
        assert.deepEqual([report.requests, report.of_requests], [3, 3], `${days} days`)
      }
    } finally {
      await busy.stop()
    }
  })

  it('pages through all requests, the newest first, each once', async () => {
    const seen: { request_id: string; settled: string; model: string }[] = []
    for (let before = ''; ;) {
      const page = (await (await ask(`/requests?limit=70&before=${before}`.replace(/&before=$/, ''))).json()) as {
        data: typeof seen
        next: string | null
      }
      seen.push(...page.data)
      if (page.next === null) break
      before = page.next
    }
    assert.equal(new Set(seen.map((it) => it.request_id)).size, 300)
    assert.deepEqual(
      seen.map((it) => it.settled),
      seen
        .map((it) => it.settled)
        .toSorted()
        .toReversed(),
    )
    const some: { model: string }[] = []
    for (let next: string | null = ''; next !== null;) {
      const before: string = next === '' ? '' : `&before=${next}`
      const page = (await (await ask(`/requests?limit=20&model=baai/embed${before}`)).json()) as {
        data: typeof some
        next: string | null
      }
      some.push(...page.data)
      next = page.next
    }
    assert.equal(some.length, seen.filter(({ model }) => model === 'baai/embed').length)
    assert.ok(some.length > 20 && some.every(({ model }) => model === 'baai/embed'))
    const failed = (await (await ask('/requests?outcome=failed&limit=200')).json()) as { data: { outcome: string }[] }
    assert.ok(failed.data.length > 0 && failed.data.every(({ outcome }) => outcome !== 'completed'))
  })

  it('finds requests by status and error code', async () => {
    const found = async (query: string): Promise<number> =>
      ((await (await ask(`/requests?${query}`)).json()) as { data: unknown[] }).data.length
    assert.ok((await found('status=200')) > 0)
    assert.deepEqual([await found('status=418'), await found('code=queue_full')], [0, 0])
    for (const wrong of ['status=99', 'status=abc', 'code=none']) {
      assert.equal((await ask(`/requests?${wrong}`)).status, 400, wrong)
    }
  })

  it('refuses wrong periods and cursors', async () => {
    for (const path of [
      '/reports/usage',
      '/reports/usage?from=2026-11-16&to=2026-11-01',
      '/reports/usage?from=2020-01-01&to=2026-11-01',
      '/reports/usage?from=yesterday&to=today',
      '/requests?before=x',
      '/requests?limit=0',
    ]) {
      assert.equal((await ask(path)).status, 400, path)
    }
  })

  it("lists an operator's requests of all workspaces, by workspace, key, model, outcome, status and time in any combination", async () => {
    interface Found {
      readonly data: readonly Record<'outcome' | 'workspace' | 'key_id' | 'model' | 'settled' | 'request_id', string>[]
      readonly next: string | null
    }
    const page = async (query: string): Promise<Found> =>
      (await (
        await weir.admin('GET', `/admin/v1/requests?${query.includes('limit=') ? '' : 'limit=200&'}${query}`)
      ).json()) as Found
    const list = async (query: string) => (await page(query)).data
    const all = await list('')
    assert.equal(all.length, 200)
    assert.ok(all.some(({ outcome }) => outcome === 'completed') && all.some(({ outcome }) => outcome !== 'completed'))
    assert.deepEqual(await list('workspace=default'), all, 'the only workspace so far')
    const [newest] = all
    assert.ok(newest)
    const { key_id: key } = newest
    const ofKey = await list(`key=${key}`)
    assert.ok(ofKey.length > 0 && ofKey.every((row) => row.key_id === key))
    const ofModel = await list('model=baai/embed')
    assert.ok(ofModel.length > 0 && ofModel.every(({ model }) => model === 'baai/embed'))
    const failed = await list('outcome=failed&status=502')
    assert.ok(failed.length > 0 && failed.every(({ outcome }) => outcome === 'engine_failed'))
    assert.deepEqual(await list('outcome=engine_failed'), failed)
    const completed = await list('outcome=completed&model=baai/embed')
    assert.ok(completed.length > 0 && completed.every((it) => it.outcome === 'completed' && it.model === 'baai/embed'))
    assert.deepEqual(await list('outcome=caller_left'), [])
    // To the millisecond, and the end is not included.
    const until = await page(`to=${newest.settled}`)
    assert.ok(until.data.every(({ settled }) => settled < newest.settled))
    const since = await list(`from=${newest.settled}&to=2100-01-01`)
    assert.ok(since.length > 0 && since.every(({ settled }) => settled === newest.settled))
    // No failure is left out, however many there are.
    const paged: string[] = []
    for (let before = ''; ;) {
      const { data, next } = await page(`outcome=failed&limit=3${before}`)
      paged.push(...data.map(({ request_id: id }) => id))
      if (next === null) break
      before = `&before=${next}`
    }
    assert.deepEqual(
      paged,
      failed.map(({ request_id: id }) => id),
    )
    for (const query of ['workspace=none', 'key=none']) {
      assert.equal((await weir.admin('GET', `/admin/v1/requests?${query}`)).status, 404, query)
    }
    for (const query of ['outcome=none', 'from=yesterday', 'before=x']) {
      assert.equal((await weir.admin('GET', `/admin/v1/requests?${query}`)).status, 400, query)
    }
  })

  it('is limited to its own workspace', async () => {
    await weir.admin('POST', '/admin/v1/workspaces', { name: 'other' })
    const made = (await (await weir.admin('POST', '/admin/v1/keys', { workspace: 'other' })).json()) as {
      id: string
      key: string
    }
    const other = await signIn(made.key)
    const own = (await (await ask('/keys')).json()) as { data: { id: string }[] }
    const theirs = (await (await ask('/keys', 'GET', undefined, other)).json()) as { data: { id: string }[] }
    assert.deepEqual(
      theirs.data.map(({ id }) => id),
      [made.id],
    )
    assert.equal((await ask(`/keys/${own.data[0]?.id}`, 'DELETE', undefined, other)).status, 404)
    const none = (await (await ask('/requests', 'GET', undefined, other)).json()) as { data: unknown[] }
    assert.deepEqual(none.data, [])
    assert.equal((await weir.call('/models')).status, 200)
  })

  it('creates, changes and revokes keys', async () => {
    const made = (await (await ask('/keys', 'POST', { name: 'website' })).json()) as { id: string; key: string }
    assert.equal((await weir.call('/models', { key: made.key })).status, 200)
    const change = { name: 'shop', expires_at: '2199-06-30' }
    const changed = await (await ask(`/keys/${made.id}`, 'PATCH', change)).json()
    assert.deepEqual(changed, { id: made.id, name: 'shop', expires_at: '2199-06-30T14:00:00.000Z' })
    const { data } = (await (await ask('/keys')).json()) as { data: object[] }
    assert.partialDeepStrictEqual(data[0], { id: made.id, redacted: `weir_…${made.key.slice(-4)}`, name: 'shop' })
    const never = await (await ask(`/keys/${made.id}`, 'PATCH', { expires_at: null })).json()
    assert.deepEqual(never, { id: made.id, name: 'shop', expires_at: null })
    for (const wrong of [{}, { name: '' }, { expires_at: '2020-01-01' }, { expires_at: 'soon' }, { more: 1 }]) {
      assert.equal((await ask(`/keys/${made.id}`, 'PATCH', wrong)).status, 400, JSON.stringify(wrong))
    }
    assert.equal((await ask('/keys/key_none', 'PATCH', change)).status, 404)
    assert.equal((await ask(`/keys/${made.id}`, 'DELETE')).status, 200)
    assert.equal((await ask(`/keys/${made.id}`, 'PATCH', change)).status, 409)
    assert.equal((await weir.call('/models', { key: made.key })).status, 401)
    assert.equal((await ask('/keys', 'POST', { name: '' })).status, 400)
    assert.equal((await ask('/keys', 'POST', { name: 'x', more: 1 })).status, 400)
  })
})
