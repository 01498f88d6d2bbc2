import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { NewBatch } from '../../src/batches/batch-store.ts'
import type { StoredFile } from '../../src/batches/file-store.ts'
import type { Refusal } from '../../src/billing/refused-requests/refusals.ts'
import { parseMonth } from '../../src/shared/money/sydney-time.ts'
import type { ApiKey, Workspace } from '../../src/workspaces/workspace.ts'
import { testBooks, type TestBooks } from '../support/books.ts'
import { noLimits } from '../support/key-limits.ts'

/**
 * Every list in pages, over entries of the same millisecond: each entry is on exactly one page, in the order that the whole list
 * has, however the pages are cut. Entries of another millisecond are around them.
 */

const october = parseMonth('2026-10')!
const AT = october.to - 3_600_000
/** Not in the order of time, so that neither order can be taken for the other. */
const IDS = ['c', 'a', 'e', 'b', 'd'] as const
const timeOf = (id: string): number => (id === 'a' ? AT + 1 : id === 'b' ? AT - 1 : AT)

let books: TestBooks
let acme: Workspace
let other: Workspace

before(async () => {
  books = await testBooks(october.from)
  acme = await books.workspace('acme')
  other = await books.workspace('other')
})
after(() => books.close())

interface List<Entry> {
  /** A page behind an entry. */
  page(limit: number, last: Entry | undefined): Promise<readonly Entry[]>
  idOf(entry: Entry): string
  readonly inOrder: readonly string[]
}

/** Reads the list in pages of each size. */
async function isPaged<Entry>({ page, idOf, inOrder }: List<Entry>): Promise<void> {
  for (const limit of [1, 2, 3, 5, 10]) {
    const found: string[] = []
    let last: Entry | undefined
    do {
      const entries = await page(limit, last)
      assert.ok(entries.length <= limit)
      found.push(...entries.map(idOf))
      last = entries.length < limit ? undefined : entries.at(-1)
      assert.ok(found.length <= inOrder.length, `pages of ${limit} repeat entries: ${found.join()}`)
    } while (last)
    assert.deepEqual(found, inOrder, `pages of ${limit}`)
  }
}

describe('pages of entries of the same millisecond', () => {
  it('have every key once, the newest first; and those that expire, in the order of their end', async () => {
    const { store } = books
    const key = (id: string, workspaceId: string, of: Partial<ApiKey>): ApiKey => ({
      ...noLimits,
      id,
      workspaceId,
      hash: `${workspaceId} ${id}`,
      ending: null,
      name: null,
      createdAt: AT,
      expiresAt: null,
      revokedAt: null,
      ...of,
    })
    for (const id of IDS) {
      await store.createKey(key(id, acme.id, { createdAt: timeOf(id), expiresAt: timeOf(id), spendPerDay: 1n }))
    }
    await store.createKey(key('foreign', other.id, {}))
    await isPaged<ApiKey>({
      page: (limit, before) => store.keys({ workspaceId: acme.id, before, limit }),
      idOf: ({ id }) => id,
      inOrder: ['a', 'e', 'd', 'c', 'b'],
    })
    await isPaged<ApiKey>({
      page: (limit, last) =>
        store.expiringKeys({
          now: AT - 2,
          before: AT + 2,
          after: last && { id: last.id, expiresAt: last.expiresAt! },
          limit,
        }),
      idOf: ({ id }) => id,
      inOrder: ['b', 'c', 'd', 'e', 'a'],
    })
    const ids = async (now: number, before: number) =>
      (await store.expiringKeys({ now, before, after: undefined, limit: 9 })).map(({ id }) => id)
    assert.deepEqual(await ids(AT, AT + 1), ['c', 'd', 'e'], 'one that ends now still may, one at the end may not')
    await isPaged<ApiKey>({
      page: (limit, last) => store.keysWithSpendLimit({ now: AT - 2, after: last?.id, limit }),
      idOf: ({ id }) => id,
      inOrder: ['a', 'b', 'c', 'd', 'e'],
    })
    assert.deepEqual(
      (await store.keys({ workspaceId: acme.id, validAt: AT, limit: 9 })).map(({ id }) => id),
      ['a'],
      'a key is not valid in the millisecond in which it ends',
    )
  })

  it('have every request once, of a workspace, a model or a key, oldest or newest first', async () => {
    const version = await books.price('meta/a', { input_per_million: '1' }, october.from - 1)
    const row = await books.row(acme, 'meta/a', version, AT, { inputTokens: 1_000_000 })
    await books.settle(
      IDS.flatMap((id) => {
        const settledAt = timeOf(id)
        return [
          { ...row, requestId: `r-${id}`, settledAt, startedAt: settledAt },
          { ...row, requestId: `x-${id}`, settledAt, startedAt: settledAt, model: 'meta/b', keyId: 'other' },
          { ...row, requestId: `f-${id}`, settledAt, startedAt: settledAt, workspaceId: other.id },
        ]
      }),
    )
    const whole = { from: AT - 1, to: AT + 2 }
    const oldest = ['b', 'c', 'd', 'e', 'a']
    for (const [filter, prefixes] of [
      [{}, ['r', 'x']],
      [{ model: 'meta/a' }, ['r']],
      [{ keyId: 'other' }, ['x']],
      [{ tier: 'default', model: 'meta/b' }, ['x']],
    ] as const) {
      const sameTime = ['c', 'd', 'e']
      const inOrder = [
        ...prefixes.map((it) => `${it}-b`),
        ...prefixes.flatMap((it) => sameTime.map((id) => `${it}-${id}`)),
        ...prefixes.map((it) => `${it}-a`),
      ]
      await isPaged({
        page: (limit, last: { settledAt: number; requestId: string } | undefined) =>
          books.store.usage({ workspaceId: acme.id, ...whole, ...filter, after: last, limit }),
        idOf: ({ requestId }) => requestId,
        inOrder,
      })
      for (const limit of [1, 2, 3, 7]) {
        const found: string[] = []
        let before: { settledAt: number; requestId: string } | undefined
        do {
          const page = await books.store.recentRequests({ workspaceId: acme.id, ...whole, ...filter, before, limit })
          found.push(...page.rows.map(({ requestId }) => requestId))
          before = page.next
          assert.ok(found.length <= inOrder.length, `pages of ${limit} repeat rows`)
        } while (before)
        assert.deepEqual(found, inOrder.toReversed(), `pages of ${limit}`)
      }
    }
    const ofOther = await books.store.usage({ workspaceId: other.id, ...whole, limit: 9 })
    assert.deepEqual(
      ofOther.map(({ requestId }) => requestId),
      oldest.map((id) => `f-${id}`),
    )
    const inside = await books.store.usage({ workspaceId: other.id, from: AT, to: AT + 1, limit: 9 })
    assert.equal(inside.length, 3, 'a period has its first millisecond, and not its end')
  })

  it('have every document once, the newest first', async () => {
    books.now = october.to
    const numbers: string[] = []
    for (const workspace of [acme, other]) {
      numbers.push((await books.invoicing.issue(workspace, october)).number!)
      for (const amount of ['0.10', '0.20']) {
        numbers.push((await books.invoicing.creditAmount(workspace, october, amount, 'kind')).number!)
      }
    }
    const inOrder = numbers.toSorted().toReversed()
    assert.equal(inOrder.length, 6)
    for (const limit of [1, 2, 3, 6]) {
      const found: string[] = []
      let before: string | undefined
      do {
        const page = await books.invoicing.page({ workspaceId: undefined, before, state: undefined, limit })
        found.push(...page.documents.map(({ number }) => number!))
        before = page.next ?? undefined
        assert.ok(found.length <= inOrder.length, `pages of ${limit} repeat documents`)
      } while (before !== undefined)
      assert.deepEqual(found, inOrder, `pages of ${limit}`)
    }
  })

  it('have every file and every batch once', async () => {
    const { store } = books
    const file = (id: string): StoredFile => ({
      id,
      workspaceId: acme.id,
      purpose: 'batch',
      filename: id,
      bytes: 1,
      place: 'here',
      createdAt: timeOf(id),
      expiresAt: timeOf(id),
    })
    for (const id of IDS) {
      await store.reserveFile(file(id), { maxFiles: 10, maxStoredBytes: 10, room: 1000 })
      await store.finishFile(id)
      const batch: NewBatch = {
        ...file(id),
        keyId: 'key',
        endpoint: '/v1/chat/completions',
        inputFileId: id,
        inputBytes: 1,
        completionWindow: '24h',
        metadata: null,
      }
      await store.createBatch(batch)
    }
    for (const [order, inOrder] of [
      ['asc', ['b', 'c', 'd', 'e', 'a']],
      ['desc', ['a', 'e', 'd', 'c', 'b']],
    ] as const) {
      await isPaged<StoredFile>({
        page: (limit, last) => store.storedFiles({ workspaceId: acme.id, order, after: last, limit }),
        idOf: ({ id }) => id,
        inOrder,
      })
    }
    await isPaged({
      page: (limit, last: { createdAt: number; id: string } | undefined) =>
        store.batches({ workspaceId: undefined, after: last, limit }),
      idOf: ({ id }) => id,
      inOrder: ['a', 'e', 'd', 'c', 'b'],
    })
  })

  it('have every refused request once, the newest first', async () => {
    const { store } = books
    const newest = IDS.map((id): Refusal => ({
      requestId: id,
      at: timeOf(id),
      workspaceId: acme.id,
      keyId: '',
      endpoint: '',
      model: '',
      code: 'queue_full',
      httpStatus: 429,
      param: '',
      reason: '',
    }))
    await store.addRefusals({ hours: [], newest }, AT - 1)
    await isPaged<Refusal>({
      page: (limit, before) => store.refusedRequests({ workspaceId: acme.id, from: AT - 1, to: AT + 2, before, limit }),
      idOf: ({ requestId }) => requestId,
      inOrder: ['a', 'e', 'd', 'c', 'b'],
    })
    await store.addRefusals({ hours: [], newest: [] }, AT)
    const left = await store.refusedRequests({ from: 0, to: AT + 2, limit: 9 })
    assert.equal(left.length, 4, 'only what is older is deleted')
  })
})
