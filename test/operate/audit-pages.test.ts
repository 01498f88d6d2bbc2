import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { auditRoutes, doerOf } from '../../src/operate/audit/routes/audit.ts'
import type { AuditEntry, AuditStore } from '../../src/operate/audit/audit-store.ts'
import { reloadRoutes } from '../../src/operate/routes/reload.ts'
import { ask, askDocumented, CALLER_ADDRESS, exchangeFor } from '../support/route-answer.ts'

/** A log with so many entries, the newest with the highest number. */
function logOf(count: number) {
  const asked: { before: number | undefined; limit: number }[] = []
  const audit = {
    async auditLog(page: { before: number | undefined; limit: number }) {
      asked.push(page)
      const newest = Math.min(count, (page.before ?? Infinity) - 1)
      return Array.from({ length: Math.min(newest, page.limit) }, (_, index) => ({ id: newest - index, at: 0 }))
    },
  } as unknown as AuditStore
  return async (query: string): Promise<{ ids: number[]; next: number | null }> => {
    const { body } = await ask(auditRoutes({ audit }, []), `GET /admin/v1/audit-log?${query}`)
    const { data, next } = body as { data: { id: number }[]; next: number | null }
    return { ids: data.map(({ id }) => id), next }
  }
}

describe('the pages of the audit log', () => {
  it('have 50 entries, unless the caller gives a number', async () => {
    const page = await logOf(60)('')
    assert.deepEqual([page.ids.length, page.ids[0], page.next], [50, 60, 11])
    assert.equal((await logOf(60)('limit=7')).ids.length, 7)
  })

  it('end with the last entry: a page that is exactly full names no next one', async () => {
    assert.deepEqual(await logOf(3)('limit=3'), { ids: [3, 2, 1], next: null })
    assert.deepEqual(await logOf(4)('limit=3'), { ids: [4, 3, 2], next: 2 })
    assert.deepEqual(await logOf(4)('limit=3&before=2'), { ids: [1], next: null })
    assert.deepEqual(await logOf(0)(''), { ids: [], next: null })
  })

  it('have at most 200 entries', async () => {
    assert.equal((await logOf(300)('limit=200')).ids.length, 200)
    for (const query of ['limit=201', 'limit=0', 'before=0']) {
      await assert.rejects(logOf(300)(query), { code: 'invalid_value' })
    }
  })
})

describe('an entry of the audit log', () => {
  const entry: AuditEntry = {
    id: 7,
    at: Date.UTC(2026, 10, 18),
    actor: 'command by root on host',
    requestId: 'request-1',
    action: 'reloadCatalog',
    subject: 'acme',
    request: '{"force":true}',
    before: null,
    after: '{}',
    outcome: 'done',
  }

  it('has the title of its action, of the API or of a command, and its time', async () => {
    const entries = ['reloadCatalog', 'restoreBackup', 'of an older version'].map((action) => ({ ...entry, action }))
    const audit = { auditLog: async () => entries } as unknown as AuditStore
    const routes = auditRoutes({ audit }, reloadRoutes({} as Parameters<typeof reloadRoutes>[0]))
    const { body } = await askDocumented(routes, 'GET /admin/v1/audit-log')
    const { requestId, ...rest } = entry
    assert.deepEqual(body.data[0], {
      ...rest,
      at: '2026-11-18T00:00:00.000Z',
      title: 'Reload the catalog',
      request_id: requestId,
    })
    assert.deepEqual([body.data[1].title, body.data[2].title], ['Restore a backup', 'of an older version'])
  })

  it('names who did it by the session or else by the token, and the address', () => {
    const { exchange } = exchangeFor('GET /')
    const { requestId } = exchange
    assert.deepEqual(doerOf(exchange), { actor: `operator (token) from ${CALLER_ADDRESS}`, requestId })
    exchange.notes = { operator: 'Ada (finance)' }
    assert.deepEqual(doerOf(exchange), { actor: `Ada (finance) from ${CALLER_ADDRESS}`, requestId })
  })
})
