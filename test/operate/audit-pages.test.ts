import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { auditRoutes } from '../../src/operate/audit/routes/audit.ts'
import type { AuditStore } from '../../src/operate/audit/audit-store.ts'
import { ask } from '../support/route-answer.ts'

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
