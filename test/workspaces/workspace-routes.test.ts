import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { memoryChanges } from '../../src/cluster/changes/memory.ts'
import { openAccounts } from '../../src/workspaces/accounts.ts'
import { workspaceRoutes } from '../../src/workspaces/routes/workspaces.ts'
import { testBooks } from '../support/books.ts'
import { ask } from '../support/route-answer.ts'

const NOW = Date.UTC(2026, 10, 2)
const PATH = '/admin/v1/workspaces'
const noBuyer = { name: null, abn: null, address: null, purchase_order: null, email: null }

async function stage(t: TestContext) {
  const books = await testBooks(NOW)
  t.after(() => books.close())
  const accounts = await openAccounts(books.store, { now: () => books.now, monotonic: () => 0 }, memoryChanges())
  const issued: string[] = []
  const sessions = {
    async issueLink(workspace: string) {
      issued.push(workspace)
      return { secret: 'a-secret', expiresAt: NOW + 1000 }
    },
  }
  const routes = workspaceRoutes({ accounts, sessions, limits: { requestsPerMinute: 600 } })
  const plain = (name: string) => ({
    id: accounts.workspace(name).id,
    name,
    requests_per_minute: 600,
    tokens_per_minute: null,
    spend_limit: null,
    spend_limit_kind: null,
    buyer: noBuyer,
    created: new Date(NOW).toISOString(),
  })
  /** Lists are in the order of time. */
  const create = async (name: string): Promise<void> => {
    await accounts.createWorkspace(name)
    books.now += 1
  }
  const change = (body: object, name = 'acme') => ask(routes, `PATCH ${PATH}/${name}`, { body })
  return { accounts, routes, plain, create, change, issued }
}

describe('the workspaces, for the operator', () => {
  it('are created with the default rate, and no other limit', async (t) => {
    const { routes, plain } = await stage(t)
    const given = { name: 'acme' }
    const { status, body, recorded } = await ask(routes, `POST ${PATH}`, { body: given })
    assert.deepEqual([status, body], [201, plain('acme')])
    assert.deepEqual(recorded, [{ action: 'createWorkspace', subject: '', body: given }])
    const again = ask(routes, `POST ${PATH}`, { body: given })
    await assert.rejects(again, { code: 'conflict', param: 'name' })
  })

  it('are listed in pages, the newest first, and found by a part of their name', async (t) => {
    const { routes, accounts, plain, create } = await stage(t)
    for (const name of ['acme', 'Bravo', 'acre']) await create(name)
    const list = async (query = '') => {
      const { body } = await ask(routes, `GET ${PATH}${query}`)
      const { data, next, object } = body as { data: readonly { name: string }[]; next: string | null; object: string }
      assert.equal(object, 'list')
      return [...data.map(({ name }) => name), next]
    }
    assert.deepEqual(await list(), ['acre', 'Bravo', 'acme', null])
    assert.deepEqual(await list('?search=AC'), ['acre', 'acme', null])
    const bravo = accounts.workspace('Bravo').id
    assert.deepEqual(await list('?limit=2'), ['acre', 'Bravo', bravo])
    assert.deepEqual(await list(`?limit=2&before=${bravo}`), ['acme', null])
    for (let count = 0; count < 98; count++) await create(`more ${count}`)
    assert.equal((await list()).length, 101)
    assert.deepEqual((await ask(routes, `GET ${PATH}/acme`)).body, plain('acme'))
    await assert.rejects(ask(routes, `GET ${PATH}/none`), { code: 'not_found' })
  })

  it('are changed a field at a time, with the state before on record', async (t) => {
    const { accounts, plain, change } = await stage(t)
    await accounts.createWorkspace('acme')
    const all = {
      requests_per_minute: 7,
      tokens_per_minute: 8,
      spend_limit: '250.00',
      spend_limit_kind: 'soft',
      buyer: {
        name: 'Acme Pty Ltd',
        abn: '51824753556',
        address: '1 Lock Street',
        purchase_order: 'PO-1',
        email: 'a@b.example',
      },
    }
    const before = plain('acme')
    const changed = await change(all)
    const full = { ...before, ...all }
    assert.deepEqual(changed.body, full)
    assert.deepEqual(changed.recorded, [{ action: 'changeWorkspace', subject: 'acme', body: all, state: before }])
    const { id } = before
    for (const [name, cleared] of [
      ['requests_per_minute', 600],
      ['tokens_per_minute', null],
    ] as const) {
      assert.deepEqual((await change({ [name]: null }, id)).body, { ...full, [name]: cleared })
      await change({ [name]: all[name] })
    }
    assert.deepEqual((await change({ spend_limit: '7.5' })).body, { ...full, spend_limit: '7.50' })
    assert.deepEqual((await change({ spend_limit: null })).body, { ...full, spend_limit: null, spend_limit_kind: null })
    for (const name of Object.keys(noBuyer)) {
      const buyer = { ...all.buyer, [name]: null }
      assert.deepEqual(((await change({ buyer: { [name]: null } })).body as typeof full).buyer, buyer)
      await change({ buyer: all.buyer })
    }
  })

  it('stay as they are if a change has no field, or a wrong one', async (t) => {
    const { accounts, plain, change } = await stage(t)
    await accounts.createWorkspace('acme')
    for (const [body, code, param] of [
      [{}, 'missing_required_parameter', 'requests_per_minute'],
      [{ buyer: {} }, 'missing_required_parameter', 'buyer'],
      [{ requests_per_minute: 5, spend_limit: 'much' }, 'invalid_value', 'spend_limit'],
      [{ requests_per_minute: 5, buyer: { abn: '1' } }, 'invalid_value', 'buyer.abn'],
      [{ requests_per_minute: 5, buyer: { email: 'a' } }, 'invalid_value', 'buyer.email'],
      [{ requests_per_minute: 5, spend_limit_kind: 'hard' }, 'invalid_value', 'spend_limit_kind'],
      [{ requests_per_minute: 0 }, 'invalid_value', 'requests_per_minute'],
    ] as const) {
      await assert.rejects(change(body), { code, param }, JSON.stringify(body))
    }
    await assert.rejects(change({ requests_per_minute: 5 }, 'none'), { code: 'not_found' })
    assert.equal(accounts.workspace('acme').requestsPerMinute, null)
    assert.deepEqual((await change({ requests_per_minute: 600 })).body, plain('acme'))
  })

  it('have links to their console', async (t) => {
    const { routes, issued } = await stage(t)
    const { status, body, recorded } = await ask(routes, `POST ${PATH}/acme/console-links`)
    assert.deepEqual([status, body], [201, { path: '/console#link=a-secret', expires_at: '2026-11-02T00:00:01.000Z' }])
    assert.deepEqual([issued, recorded], [['acme'], [{ action: 'issueConsoleLink', subject: 'acme' }]])
  })
})
