import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { modelEntry, OPERATOR_TOKEN, startWeir, type TestWeir } from '../support/weir.ts'

let engine: ScriptedEngine
let weir: TestWeir

before(async () => {
  engine = await scriptedEngine()
  weir = await startWeir({ models: [modelEntry([engine.url])] })
})
after(async () => {
  await weir.stop()
  await engine.close()
})

interface Entry {
  readonly id: number
  readonly actor: string
  readonly action: string
  readonly subject: string
  readonly request: string | null
  readonly before: string | null
  readonly after: string | null
  readonly outcome: string
}

async function log(query = ''): Promise<{ data: Entry[]; next: number | null }> {
  return (await (await weir.admin('GET', `/admin/v1/audit-log${query}`)).json()) as {
    data: Entry[]
    next: number | null
  }
}

const newest = async (): Promise<Entry> => (await log()).data[0] ?? assert.fail('nothing is on record')

describe('the audit log', () => {
  it('has every change with the state before and after', async () => {
    await weir.admin('POST', '/admin/v1/workspaces', { name: 'acme' })
    const created = await newest()
    assert.deepEqual([created.action, created.outcome, created.before], ['createWorkspace', 'done', null])
    assert.equal((JSON.parse(created.after ?? '') as { name: string }).name, 'acme')
    await weir.admin('PATCH', '/admin/v1/workspaces/acme', { spend_limit: '250.00' })
    const changed = await newest()
    assert.deepEqual([changed.action, changed.subject], ['changeWorkspace', 'acme'])
    assert.match(changed.actor, /^operator \(token\) from .*127\.0\.0\.1$/)
    assert.equal((JSON.parse(changed.before ?? '') as { spend_limit: null }).spend_limit, null)
    assert.equal((JSON.parse(changed.after ?? '') as { spend_limit: string }).spend_limit, '250.00')
  })

  it('has refused actions, and no reads', async () => {
    const refused = await weir.admin('PATCH', '/admin/v1/workspaces/nobody', { spend_limit: '1.00' })
    assert.equal(refused.status, 404)
    const entry = await newest()
    assert.deepEqual([entry.action, entry.outcome, entry.after], ['changeWorkspace', 'refused', null])
    await weir.admin('GET', '/admin/v1/workspaces')
    await weir.admin('POST', '/admin/v1/catalog/preview')
    await weir.admin('POST', '/admin/v1/invoices/preview', { workspace: 'acme', period: '2026-11' })
    assert.equal((await newest()).id, entry.id)
  })

  it('has no secrets', async () => {
    const made = (await (await weir.admin('POST', '/admin/v1/keys', { workspace: 'acme' })).json()) as { key: string }
    const { path } = (await (await weir.admin('POST', '/admin/v1/workspaces/acme/console-links')).json()) as {
      path: string
    }
    const all = JSON.stringify((await log()).data)
    assert.ok(!all.includes(made.key) && !all.includes(path.split('=')[1] ?? '') && !all.includes(OPERATOR_TOKEN))
  })

  it('is served in pages, the newest first', async () => {
    const all = (await log()).data.map(({ id }) => id)
    const first = await log('?limit=2')
    const second = await log(`?limit=2&before=${first.next}`)
    assert.deepEqual(
      [...first.data, ...second.data].map(({ id }) => id),
      all.slice(0, 4),
    )
  })

  it('cannot be changed', () => {
    const database = new DatabaseSync(join(weir.dataDir, 'weir.db'))
    try {
      assert.throws(() => database.exec('DELETE FROM audit_log'), /append-only/)
      assert.throws(() => database.exec("UPDATE audit_log SET actor = 'nobody'"), /append-only/)
      assert.throws(() => database.exec("UPDATE audit_log SET after = '{}'"), /append-only/)
    } finally {
      database.close()
    }
  })

  it('names the session of the console', async () => {
    const signed = await fetch(`${weir.adminUrl}/console/api/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-weir-console': '1' },
      body: JSON.stringify({ token: OPERATOR_TOKEN }),
    })
    const header = signed.headers.get('set-cookie') ?? ''
    assert.match(header, /^weir_operator=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/)
    const cookie = header.split(';')[0] ?? ''
    const create = (headers: Record<string, string>): Promise<Response> =>
      fetch(`${weir.adminUrl}/admin/v1/workspaces`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', cookie, ...headers },
        body: JSON.stringify({ name: 'from console' }),
      })
    assert.equal((await create({})).status, 401, 'a page of another site')
    assert.equal((await create({ 'x-weir-console': '1', 'sec-fetch-site': 'cross-site' })).status, 401)
    assert.equal((await create({ 'x-weir-console': '1' })).status, 201)
    assert.match((await newest()).actor, /^operator \(console [0-9a-f]{8}\) from /)
    const wrong = await fetch(`${weir.adminUrl}/console/api/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-weir-console': '1' },
      body: JSON.stringify({ token: weir.key }),
    })
    assert.equal(wrong.status, 401)
  })
})

describe('the preview of the catalog', () => {
  it('shows what a reload would change, what is wrong, and what would be lost', async () => {
    type Preview = {
      mistakes: string[]
      losses: string[]
      changes: { model: string; change: string; fields: object[] }[]
    }
    const preview = async (): Promise<Preview> =>
      (await (await weir.admin('POST', '/admin/v1/catalog/preview')).json()) as Preview
    assert.deepEqual((await preview()).changes, [])
    const pricing = { input_per_million: '0.30', output_per_million: '0.60', cached_input_per_million: '0.05' }
    weir.writeConfig({
      models: [modelEntry([engine.url], { pricing }), modelEntry([engine.url], { id: 'meta/new', aliases: [] })],
    })
    const { changes } = await preview()
    assert.deepEqual(
      changes.map(({ model, change }) => [model, change]),
      [
        ['meta/test-8b', 'changed'],
        ['meta/new', 'added'],
      ],
    )
    assert.deepEqual(changes[0]?.fields, [{ field: 'pricing.input_per_million', before: '0.20', after: '0.30' }])
    weir.writeConfig({ models: [modelEntry([engine.url], { context_length: 'long' })] })
    assert.match((await preview()).mistakes[0] ?? '', /context_length/)
    weir.writeConfig({ models: [modelEntry([engine.url], { pricing: { input_per_million: '0.20' } })] })
    assert.match((await preview()).losses[0] ?? '', /would lose output_per_million/)
    assert.ok(!JSON.stringify(await preview()).includes('engine-secret'))
  })
})
