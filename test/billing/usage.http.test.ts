import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'
import { sydneyDate } from '../../src/shared/money/sydney-time.ts'
import { stageConfig } from '../support/chat-stage.ts'
import { commandLine } from '../support/command-line.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'

interface List {
  readonly data: readonly Record<string, unknown>[]
  readonly total?: Record<string, unknown>
  readonly has_more: boolean
  readonly next: string | null
}

const ids: string[] = []
let engine: ScriptedEngine
let weir: TestWeir
let otherKey: string
let otherId: string

before(async () => {
  engine = await scriptedEngine()
  const models = [modelEntry([engine.url]), modelEntry([engine.url], { id: 'meta/other', aliases: [] })]
  weir = await startWeir(stageConfig([engine.url], { config: { models } }))
  await weir.admin('POST', '/admin/v1/workspaces', { name: 'acme' })
  const made = await weir.admin('POST', '/admin/v1/keys', { workspace: 'acme' })
  otherKey = ((await made.json()) as { key: string }).key
  for (const [index, model] of ['meta/test-8b', 'meta/other', 'meta/test-8b', 'meta/test-8b', 'meta/other'].entries()) {
    engine.script = { promptTokens: 10 + index, tokens: ['a', 'b'], silentUsage: index === 4 }
    const response = await weir.chat({ model })
    ids.push(response.headers.get('x-request-id') ?? '')
    await response.text()
  }
  engine.script = {}
  otherId = (await weir.chat({}, { key: otherKey })).headers.get('x-request-id') ?? ''
})
after(async () => {
  await weir.stop()
  await engine.close()
})

async function usage(query: string, key = weir.key): Promise<List> {
  const response = await weir.call(`/usage${query}`, { key })
  const body = await response.text()
  assert.equal(response.status, 200, body)
  return JSON.parse(body) as List
}

async function refused(path: string, key = weir.key): Promise<[number, string, string | null]> {
  const response = await weir.call(path, { key })
  const { error } = (await response.json()) as { error: { code: string; param: string | null } }
  return [response.status, error.code, error.param]
}

const today = (): string => sydneyDate(Date.now())

describe('GET /usage', () => {
  it('lists the rows of the key’s own workspace, oldest first', async () => {
    const { data, has_more: more, next } = await usage('')
    assert.deepEqual(
      data.map((row) => row['request_id']),
      ids,
    )
    assert.deepEqual([more, next], [false, null])
    assert.deepEqual(
      (await usage('', otherKey)).data.map((row) => row['request_id']),
      [otherId],
    )
  })

  it('is served in pages without gaps or repetitions', async () => {
    const seen: unknown[] = []
    let query = '?limit=2'
    for (let page = 0; page < 3; page++) {
      const { data, next } = await usage(query)
      seen.push(...data.map((row) => row['request_id']))
      query = `?limit=2&after=${next}`
    }
    assert.deepEqual(seen, ids)
  })

  it('returns sums by model, key and day, with a total', async () => {
    const byModel = await usage(`?group_by=model&from=${today()}&to=${today()}`)
    assert.deepEqual(
      byModel.data.map((it) => [it['model'], it['requests'], it['estimated_requests']]),
      [
        ['meta/other', 2, 1],
        ['meta/test-8b', 3, 0],
      ],
    )
    assert.equal(byModel.data[1]?.['input_tokens'], 10 + 12 + 13)
    const rows = await usage('')
    const amount = rows.data.reduce((sum, row) => sum + BigInt(String(row['amount_pico_aud'])), 0n)
    assert.equal(byModel.total?.['amount_pico_aud'], amount.toString())
    const byDay = await usage('?group_by=day')
    assert.deepEqual(
      byDay.data.map((it) => [it['day'], it['requests'], it['amount_pico_aud']]),
      [[today(), 5, amount.toString()]],
    )
    assert.equal((await usage('?group_by=key')).data.length, 1)
    const first = await usage('?group_by=model&limit=1')
    assert.deepEqual([first.data.length, first.has_more, first.next], [1, true, 'meta/other'])
    const second = await usage(`?group_by=model&limit=1&after=${first.next}`)
    assert.deepEqual([second.data[0]?.['model'], second.has_more], ['meta/test-8b', false])
    assert.deepEqual([first.total, second.total], [byModel.total, byModel.total], 'of all pages')
  })

  it('sums whole hours if the period is not made of whole days', async () => {
    const hour = Math.floor(Date.now() / 3_600_000) * 3_600_000
    const from = new Date(hour - 3_600_000).toISOString()
    assert.equal((await usage(`?group_by=model&from=${from}`)).total?.['requests'], 5)
    assert.equal((await usage(`?group_by=model&to=${from}`)).total?.['requests'], 0)
  })

  it('filters rows, and returns them as a file', async () => {
    const { data } = await usage('?model=meta/other')
    assert.deepEqual(
      data.map((row) => row['request_id']),
      [ids[1], ids[4]],
    )
    const keyId = String(data[0]?.['key_id'])
    assert.equal((await usage(`?key=${keyId}`)).data.length, 5)
    assert.equal((await usage(`?key=${keyId}&model=meta/other`)).data.length, 2)
    assert.equal((await usage('?key=none')).data.length, 0)
    const ofNoKey = await (await weir.call('/usage?format=csv&key=none')).text()
    assert.equal(ofNoKey.trimEnd().split('\n').length, 1, 'the head alone')
    const version = String(data[0]?.['price_version'])
    assert.equal((await usage(`?price_versions=${version}`)).data.length, 2)
    const csv = await weir.call('/usage?format=csv&model=meta/other')
    assert.match(csv.headers.get('content-type') ?? '', /^text\/csv/)
    const lines = (await csv.text()).trimEnd().split('\n')
    assert.equal(lines.length, 3)
    assert.ok(lines[1]?.startsWith(`${ids[1]},`))
    const jsonl = (await (await weir.call('/usage?format=jsonl')).text()).trimEnd().split('\n')
    assert.deepEqual(
      jsonl.map((line) => (JSON.parse(line) as { request_id: string }).request_id),
      ids,
    )
  })

  it('finds one request by its X-Request-Id, but none of another workspace', async () => {
    const row = (await (await weir.call(`/usage/${ids[0]}`)).json()) as Record<string, unknown>
    assert.deepEqual([row['input_tokens'], row['output_tokens'], row['outcome']], [10, 2, 'completed'])
    for (const id of [otherId, 'nothing']) {
      assert.deepEqual(await refused(`/usage/${id}`), [404, 'not_found', 'request_id'])
    }
  })

  it('refuses mistakes with the name of the parameter', async () => {
    for (const [query, param] of [
      ['group_by=workspace', 'group_by'],
      ['limit=0', 'limit'],
      ['after=x', 'after'],
      ['from=yesterday', 'from'],
      ['group_by=model&from=2026-11-01T00:30:00Z', 'from'],
      ['group_by=day&from=2026-11-01T00:00:00Z', 'from'],
      ['format=parquet', 'format'],
      ['price_versions=a', 'price_versions'],
    ]) {
      assert.deepEqual(await refused(`/usage?${query}`), [400, 'invalid_value', param], query)
    }
  })
})

describe('the operator', () => {
  it('sees sums over all workspaces, the rows of each, and any request', async () => {
    const get = async (path: string): Promise<List & Record<string, unknown>> =>
      (await (await weir.admin('GET', path)).json()) as List & Record<string, unknown>
    const { data, total } = await get('/admin/v1/usage?group_by=workspace')
    assert.deepEqual(new Set(data.map((it) => it['requests'])), new Set([1, 5]))
    assert.deepEqual(new Set(data.map((it) => it['workspace'])), new Set(['acme', 'default']))
    assert.equal(total?.['requests'], 6)
    assert.equal((await get('/admin/v1/usage?workspace=acme')).data[0]?.['request_id'], otherId)
    assert.equal((await get(`/admin/v1/usage/${otherId}`))['request_id'], otherId)
    assert.equal((await weir.admin('GET', '/admin/v1/usage')).status, 400)
  })

  it('exports the rows to a file', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-export-'))
    try {
      for (const format of ['csv', 'jsonl', 'parquet']) {
        const file = join(folder, `usage.${format}`)
        const where = ['--config', weir.configFile, '--data', weir.dataDir]
        const { code, stderr } = await commandLine([
          'usage',
          '--workspace',
          'default',
          '--export',
          format,
          file,
          ...where,
        ])
        assert.equal(code, 0, stderr)
        const text =
          format === 'parquet'
            ? JSON.stringify(
                await parquetReadObjects({ file: await asyncBufferFromFile(file), columns: ['request_id'] }),
              )
            : readFileSync(file, 'utf8')
        for (const id of ids) assert.ok(text.includes(id))
        assert.ok(!text.includes(otherId))
      }
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
