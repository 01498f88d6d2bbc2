import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Database, Row, Statement } from '../../src/store/database.ts'
import { recentRequests } from '../../src/billing/usage/queries/recent-requests.ts'
import { usageRows } from '../../src/billing/usage/queries/usage-rows.ts'

const HOUR_MS = 3_600_000

/** The periods that are searched for a page, when the sums say how many rows each hour has. */
async function searched(
  hours: readonly (readonly [hour: number, rows: number])[],
  asked: {
    readonly from?: number
    readonly to?: number
    readonly limit?: number
    readonly afterMs?: number
    readonly of?: { readonly model?: string; readonly keyId?: string }
  } = {},
): Promise<readonly (readonly [from: number, to: number])[]> {
  const read: Statement[] = []
  const sums: Row[] = hours.map(([hour, rows]) => ({ hour: hour * HOUR_MS, row_count: BigInt(rows) }))
  const database = {
    async transact({ statements }: { readonly statements: readonly Statement[] }) {
      if (statements[0]?.sql.includes('usage_hours')) return [sums]
      read.push(...statements)
      return []
    },
  } as unknown as Database
  await usageRows(database, {
    workspaceId: 'ws',
    from: (asked.from ?? 0) * HOUR_MS,
    to: (asked.to ?? 1000) * HOUR_MS,
    limit: asked.limit ?? 10,
    ...(asked.of ?? { model: 'a/b' }),
    after: asked.afterMs === undefined ? undefined : { settledAt: asked.afterMs, requestId: 'r' },
  })
  return read.map(({ runs: [values] }) => [Number(values?.[2]) / HOUR_MS, Number(values?.[1]) / HOUR_MS] as const)
}

describe('the rows of one model', () => {
  it('are searched in the hours that have some, and consecutive hours are one search', async () => {
    assert.deepEqual(
      await searched([
        [5, 1],
        [6, 1],
        [9, 1],
      ]),
      [
        [5, 7],
        [9, 10],
      ],
    )
    assert.deepEqual(await searched([]), [])
  })

  it('are searched in no more hours than a page needs, and the first hour may have none for it', async () => {
    const hours = [
      [5, 10],
      [7, 9],
      [9, 1],
      [11, 1],
    ] as const
    assert.deepEqual(await searched(hours), [[5, 6]])
    assert.deepEqual(await searched(hours, { from: 5 }), [
      [5, 6],
      [7, 8],
      [9, 10],
    ])
    assert.deepEqual(await searched(hours, { from: 5, limit: 9 }), [
      [5, 6],
      [7, 8],
    ])
  })

  it('are searched like those of one key; all rows of a workspace are one search', async () => {
    const hours = [
      [5, 1],
      [9, 1],
    ] as const
    assert.equal((await searched(hours, { of: { keyId: 'key_1' } })).length, 2)
    assert.deepEqual(await searched(hours, { of: {} }), [[0, 1000]])
  })

  it('are searched within the requested times, and no further back than the page before', async () => {
    const hours = [
      [5, 1],
      [6, 1],
    ] as const
    assert.deepEqual(await searched(hours, { from: 5.25, to: 6.5 }), [[5.25, 6.5]])
    assert.deepEqual(await searched([[6, 1]], { afterMs: 6.5 * HOUR_MS }), [[6.5, 7]])
  })
})

describe('the newest requests of one model', () => {
  /** How many searches a page makes, and where the next one starts. No row matches. */
  async function page(hours: readonly (readonly [hour: number, rows: number])[], limit = 2, before?: number) {
    const read: Statement[] = []
    const database = {
      async transact({ statements }: { readonly statements: readonly Statement[] }) {
        if (statements[0]?.sql.includes('usage_hours'))
          return [hours.map(([hour, rows]) => ({ hour: hour * HOUR_MS, row_count: rows }))]
        read.push(...statements)
        return []
      },
    } as unknown as Database
    const { next } = await recentRequests(database, {
      workspaceId: 'ws',
      model: 'a/b',
      from: 0,
      to: 1000 * HOUR_MS,
      limit,
      before: before === undefined ? undefined : { settledAt: before * HOUR_MS, requestId: 'r' },
    })
    return [read.length, next && [next.settledAt / HOUR_MS, next.requestId]]
  }

  it('are searched in the hours that have some, and the next page starts before the last of them', async () => {
    assert.deepEqual(await page([]), [0, undefined])
    const two = [
      [9, 1],
      [7, 1],
    ] as const
    assert.deepEqual(await page(two), [2, undefined])
    assert.deepEqual(await page([...two, [5, 1]]), [3, [5, '']], 'one hour more than a page needs')
  })

  it('are searched among five thousand rows at most', async () => {
    const hours = [
      [9, 4000],
      [7, 1000],
      [5, 1],
    ] as const
    assert.deepEqual(await page(hours, 9), [2, [7, '']])
    assert.deepEqual(await page([[9, 5000]], 9), [1, undefined])
    assert.deepEqual(await page([[9, 5001]], 9), [2, undefined], 'one of them finds where the search ends')
  })

  /** A page of two, if an hour has these rows of the model. */
  async function pageOf(found: readonly string[], times = { from: 0, to: 1000 * HOUR_MS }) {
    const read: Statement[] = []
    const database = {
      async transact({ statements }: { readonly statements: readonly Statement[] }) {
        if (statements[0]?.sql.includes('usage_hours')) return [[{ hour: 9 * HOUR_MS, row_count: found.length }]]
        read.push(...statements)
        return [found.map((id, index) => ({ request_id: id, settled_at: 9 * HOUR_MS + 9 - index }))]
      },
    } as unknown as Database
    const { rows, next } = await recentRequests(database, { workspaceId: 'ws', model: 'a/b', ...times, limit: 2 })
    return { ids: rows.map(({ requestId }) => requestId), next: next?.requestId, searches: read }
  }

  it('end with the page that has the last of them, also if it is full', async () => {
    assert.partialDeepStrictEqual(await pageOf(['c', 'b']), { ids: ['c', 'b'], next: undefined })
    assert.partialDeepStrictEqual(await pageOf(['c', 'b', 'a']), { ids: ['c', 'b'], next: 'b' })
  })

  it('are searched in the part of an hour that is asked for', async () => {
    const period = async (from: number, to: number) => {
      const { searches } = await pageOf(['a'], { from: from * HOUR_MS, to: to * HOUR_MS })
      return searches.map(({ runs: [values] }) => values?.slice(1, 3).map((at) => Number(at) / HOUR_MS))
    }
    assert.deepEqual(await period(9.25, 9.75), [[9.25, 9.75]])
    assert.deepEqual(await period(8, 11), [[9, 10]])
  })
})
