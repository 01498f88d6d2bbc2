import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { documentOf } from '../../src/billing/invoices/invoice-document.ts'
import { NEWEST_OF_CODE, type Refusal, type RefusedHour } from '../../src/billing/refused-requests/refusals.ts'
import { RefusedWrite } from '../../src/shared/refused-write.ts'
import type { LedgerRow, UsageFilter } from '../../src/ledger/rows.ts'
import { parseMonth, sydneyDay } from '../../src/shared/money/sydney-time.ts'
import type { InvoiceState } from '../../src/billing/invoices/payments/payment-store.ts'
import type { IssuedInvoice, Reversal, UnfinishedNote } from '../../src/billing/invoices/invoice-store.ts'
import type { KeyChange, KeyQuery } from '../../src/workspaces/keys/key-store.ts'
import type { Store } from '../../src/store/store.ts'
import type { RowPlace } from '../../src/billing/usage/report-store.ts'
import type { SumsQuery } from '../../src/billing/usage/usage-store.ts'
import { sampleRow } from '../support/ledger-samples.ts'
import { sampleRefusal } from '../support/refusal-samples.ts'
import { pooledAdapters, storeAdapters, type TestDatabase } from '../support/store-adapters.ts'
import type { ApiKey } from '../../src/workspaces/workspace.ts'
import type { StoredSession } from '../../src/workspaces/sessions/session-store.ts'
import { noLimits } from '../support/key-limits.ts'

/** What every store promises, whatever database is behind it. */

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const october = parseMonth('2026-10')!
const november = parseMonth('2026-11')!
const always = { from: 0, to: Number.MAX_SAFE_INTEGER }

const workspaceOf = (id: string) => ({ id, name: id, requestsPerMinute: null, createdAt: 1 })

const everyRow = (store: Store, workspaceId: string): Promise<readonly LedgerRow[]> =>
  store.usage({ workspaceId, ...always, limit: 100_000 })

const settle = (store: Store, ...rows: readonly LedgerRow[]): Promise<void> => store.addRows(rows)

const fits = (row: LedgerRow, { model, keyId }: UsageFilter): boolean =>
  (model === undefined || row.model === model) && (keyId === undefined || row.keyId === keyId)

/** An invoice or a note for October. What it says does not matter to the store. */
function issued(workspaceId: string, sequence: number, changes: Partial<IssuedInvoice> = {}): IssuedInvoice {
  const kind = changes.kind ?? 'tax_invoice'
  const number = `${kind === 'tax_invoice' ? 'INV' : 'ADJ'}-${sequence}`
  const document = documentOf({
    kind,
    number,
    workspace: workspaceId,
    month: october,
    issuedAt: november.from,
    seller: undefined,
    buyer: { name: 'Bücher & Söhne', abn: null, address: '' },
    purchaseOrder: null,
    warnings: [],
    lines: [],
    counts: { requests: 1, estimatedRequests: 0, rows: 1 },
  })
  return {
    number,
    kind,
    sequence,
    sellerAbn: '51824753556',
    workspaceId,
    period: october.name,
    periodFrom: october.from,
    periodTo: october.to,
    issuedAt: november.from,
    document,
    ...changes,
  }
}

for (const adapter of [...storeAdapters, ...pooledAdapters]) {
  const keyOf = (workspaceId: string): ApiKey => ({
    id: 'key',
    workspaceId,
    hash: 'hash a',
    ending: null,
    name: null,
    createdAt: 5,
    expiresAt: null,
    revokedAt: null,
    ...noLimits,
  })

  describe(`the store on ${adapter.name}`, () => {
    let database: TestDatabase
    /** Two processes that have the same database open. */
    let store: Store
    let other: Store
    let lastWorkspace = 0

    before(async () => {
      database = await adapter.create()
      store = await database.open()
      other = await database.open()
    })
    after(() => database.remove())

    /** Every test has a workspace of its own. */
    async function newWorkspace(): Promise<string> {
      const id = `ws_${String(++lastWorkspace).padStart(4, '0')}`
      await store.createWorkspace(workspaceOf(id))
      return id
    }

    describe('sessions', () => {
      const limits = { ofOwner: 3, ofAll: 5 }
      const session = (hash: string, changes: Partial<StoredSession> = {}): StoredSession => ({
        kind: 'session',
        hash,
        owner: 'ws_a',
        keyHash: null,
        name: `console_${hash}`,
        startedAt: 1,
        usedAt: 1,
        expiresAt: 1000,
        address: null,
        person: null,
        roles: [],
        ...changes,
      })
      const found = async (...hashes: readonly string[]): Promise<readonly string[]> =>
        (await other.sessionsByHash(hashes)).map(({ hash }) => hash).toSorted()
      const clear = (): Promise<boolean> => store.addSession(session('x', { expiresAt: 1 }), limits, 1_000_000)

      it('are found by every process until they are removed, and a link only once', async () => {
        const [one, two] = [session('one', { keyHash: 'hash of a key' }), session('two', { kind: 'link' })]
        assert.equal(await store.addSession(one, limits, 1), false)
        assert.equal(await store.addSession(two, limits, 1), false)
        assert.deepEqual(await other.sessionsByHash(['one', 'two', 'three']), [one], 'a link is no session')
        assert.equal(await other.takeLink('one'), undefined, 'a session is no link')
        const taken = await Promise.all([store.takeLink('two'), other.takeLink('two')])
        assert.deepEqual(
          taken.filter((it) => it),
          [two],
        )
        await other.removeSession('one')
        assert.deepEqual(await store.sessionsByHash(['one']), [])
        await clear()
      })

      it('are removed when they have expired, and the oldest when there are too many of one owner or in total', async () => {
        assert.equal(await store.addSession(session('old', { expiresAt: 10 }), limits, 1), false)
        for (const hash of ['a1', 'a2', 'a3']) assert.equal(await store.addSession(session(hash), limits, 10), false)
        assert.deepEqual(await found('old', 'a1', 'a2', 'a3'), ['a1', 'a2', 'a3'])
        assert.equal(await store.addSession(session('link', { kind: 'link' }), limits, 10), false, 'links apart')
        assert.equal(await store.addSession(session('a4'), limits, 10), true)
        assert.deepEqual(await found('a1', 'a2', 'a3', 'a4'), ['a2', 'a3', 'a4'])
        for (const hash of ['b1', 'b2']) {
          assert.equal(await store.addSession(session(hash, { owner: 'ws_b' }), limits, 10), false)
        }
        assert.equal(await store.addSession(session('c1', { owner: 'operator' }), limits, 10), true)
        assert.deepEqual(await found('a2', 'a3', 'a4', 'b1', 'b2', 'c1'), ['a3', 'a4', 'b1', 'b2', 'c1'])
        await clear()
      })

      it('have the person as they were at the last sign-in, are listed, move and note their use', async () => {
        const ada = { id: 'person_1', issuer: 'https://id', subject: '1', name: 'Ada', email: null }
        const roles = [{ role: 'member', workspaceId: 'ws_a' }] as const
        await store.addSession(session('p1', { person: ada, roles, address: '::1' }), limits, 1)
        await store.addSession(session('p2', { person: { ...ada, email: 'ada@example.com' } }), limits, 1)
        await store.addSession(session('late', { expiresAt: 2 }), limits, 1)
        await store.addSession(session('link', { kind: 'link' }), limits, 1)
        const [p1] = await other.sessionsByHash(['p1'])
        assert.deepEqual([p1?.person?.email, p1?.roles, p1?.address], ['ada@example.com', roles, '::1'])
        const listed = async (query: object): Promise<readonly string[]> =>
          (await other.sessions({ now: 2, limit: 9, ...query })).map(({ hash }) => hash)
        assert.deepEqual(await listed({}), ['p2', 'p1'])
        assert.deepEqual(await listed({ limit: 1 }), ['p2'])
        assert.deepEqual(await listed({ before: 'console_p2' }), ['p1'])
        assert.deepEqual(await listed({ name: 'console_p1', personId: 'person_1' }), ['p1'])
        assert.deepEqual(await listed({ personId: 'person_2' }), [])
        assert.deepEqual(await listed({ keyHash: 'none' }), [])
        await other.moveSession('p1', 'ws_b')
        await other.sessionUsed('p1', 20)
        await other.sessionUsed('p1', 10)
        const [moved] = await store.sessionsByHash(['p1'])
        assert.deepEqual([moved?.owner, moved?.usedAt], ['ws_b', 20])
        await clear()
      })

      it('are removed with their key', async () => {
        const workspaceId = await newWorkspace()
        const key = { ...keyOf(workspaceId), id: 'key of a session', hash: 'hash of that key' }
        await store.createKey(key)
        await store.addSession(session('with', { keyHash: key.hash }), limits, 1)
        await store.addSession(session('without'), limits, 1)
        await other.revokeKey(key.id, 5)
        assert.deepEqual(await found('with', 'without'), ['without'])
        await clear()
      })
    })

    describe('refused requests', () => {
      const noon = october.from + 12 * HOUR_MS
      const period = { from: october.from, to: october.to }
      const hourOf = (refusal: Refusal): RefusedHour => ({
        ...refusal,
        hour: refusal.at - (refusal.at % HOUR_MS),
        requests: 1,
      })
      const refuse = (adder: Store, refusals: readonly Refusal[], since = 0): Promise<void> => {
        const hours = new Map<string, RefusedHour>()
        for (const it of refusals.map(hourOf)) {
          const place = [it.workspaceId, it.hour, it.keyId, it.code].join(' ')
          hours.set(place, { ...it, requests: (hours.get(place)?.requests ?? 0) + 1 })
        }
        return adder.addRefusals({ hours: [...hours.values()], newest: refusals }, since)
      }

      it('are read as they were written, and are found by their id', async () => {
        const workspaceId = await newWorkspace()
        const full = sampleRefusal({
          workspaceId,
          at: noon,
          endpoint: '/models/{slug+}',
          model: 'a "b" \\ {c,NULL} \'é$1?',
          param: 'model',
          reason: 'Every engine of it is down. "Try" again, \\ later.',
        })
        const empty = sampleRefusal({ workspaceId, at: noon + 1, httpStatus: 400, endpoint: '', model: '', param: '' })
        await refuse(store, [full, empty])
        assert.deepEqual(await other.refusedRequests({ ...period, workspaceId, limit: 10 }), [empty, full])
        const asked = { ...period, workspaceId, limit: 10 }
        assert.deepEqual(await other.refusedRequests({ ...asked, model: full.model }), [full])
        assert.deepEqual(await other.refusedRequests({ ...asked, httpStatus: full.httpStatus, model: 'none' }), [])
        assert.deepEqual(await other.refusedRequests({ ...asked, httpStatus: empty.httpStatus }), [empty])
        assert.deepEqual(await other.refusedRequests({ ...asked, before: empty }), [full])
        assert.deepEqual(await other.refusedRequests({ ...asked, before: full }), [])
        assert.deepEqual(await other.refusedRequests({ ...asked, from: full.at + 1 }), [empty])
        assert.deepEqual(await other.refusedRequest(full.requestId), full)
        assert.equal(await other.refusedRequest('nothing'), undefined)
      })

      it('add up over several processes that count at once, by hour, key and code', async () => {
        const workspaceId = await newWorkspace()
        const one = { workspaceId, at: noon }
        const batch = (): readonly Refusal[] => [
          ...Array.from({ length: 5 }, () => sampleRefusal(one)),
          sampleRefusal({ ...one, keyId: 'key_2' }),
          sampleRefusal({ ...one, code: 'queue_full', at: noon + HOUR_MS }),
        ]
        await Promise.all(Array.from({ length: 8 }, (_, index) => refuse(index % 2 === 0 ? store : other, batch())))
        assert.deepEqual(await store.refusedGroups({ ...period, workspaceId, limit: 10 }), [
          { workspaceId, keyId: 'key_1', code: 'rate_limit_exceeded', requests: 40 },
          { workspaceId, keyId: 'key_1', code: 'queue_full', requests: 8 },
          { workspaceId, keyId: 'key_2', code: 'rate_limit_exceeded', requests: 8 },
        ])
        assert.deepEqual(await store.refusedOverTime({ ...period, workspaceId }), [
          { hour: noon, code: 'rate_limit_exceeded', requests: 48 },
          { hour: noon + HOUR_MS, code: 'queue_full', requests: 8 },
        ])
        const key = { ...period, workspaceId, keyId: 'key_2' }
        assert.deepEqual(await store.refusedOverTime(key), [{ hour: noon, code: 'rate_limit_exceeded', requests: 8 }])
        const full = { ...period, workspaceId, code: 'queue_full' } as const
        assert.equal((await store.refusedGroups({ ...full, limit: 10 }))[0]?.requests, 8)
        assert.equal((await store.refusedGroups({ ...period, workspaceId, limit: 2 })).length, 2)
        const later = { workspaceId, from: noon + HOUR_MS, to: october.to }
        assert.deepEqual(
          (await store.refusedOverTime(later)).map(({ code }) => code),
          ['queue_full'],
        )
        assert.deepEqual(await store.refusedOverTime({ workspaceId, from: october.from, to: noon }), [])
      })

      it('are kept in a fixed number for each workspace and code, the newest, so a flood displaces nothing else', async () => {
        const [loud, quiet] = [await newWorkspace(), await newWorkspace()]
        const rare = sampleRefusal({ workspaceId: loud, code: 'spend_limit_exceeded', httpStatus: 402, at: noon })
        const others = sampleRefusal({ workspaceId: quiet, at: noon })
        await refuse(store, [rare, others])
        const flood = Array.from({ length: 90 }, (_, index) =>
          sampleRefusal({ workspaceId: loud, at: noon + 1 + index }),
        )
        await refuse(store, flood.slice(0, 30))
        await refuse(other, flood.slice(60))
        await refuse(store, flood.slice(30, 60))
        const kept = await store.refusedRequests({ ...period, workspaceId: loud, limit: 1000 })
        assert.deepEqual(
          kept.map(({ requestId }) => requestId),
          [...flood.slice(-NEWEST_OF_CODE).toReversed(), rare].map(({ requestId }) => requestId),
        )
        assert.deepEqual(await store.refusedRequests({ ...period, workspaceId: quiet, limit: 10 }), [others])
        assert.equal((await store.refusedRequests({ ...period, workspaceId: loud, limit: 5 })).length, 5)
        const all = await store.refusedRequests({ ...period, limit: 1000 })
        assert.ok([rare, others].every(({ requestId }) => all.some((it) => it.requestId === requestId)))
      })

      it('are deleted when they are too old', async () => {
        const workspaceId = await newWorkspace()
        const query = { workspaceId, from: 0, to: october.to, limit: 10 }
        await refuse(store, [
          sampleRefusal({ workspaceId, at: 2 * HOUR_MS }),
          sampleRefusal({ workspaceId, at: 3 * HOUR_MS }),
        ])
        const last = sampleRefusal({ workspaceId, at: 4 * HOUR_MS })
        await refuse(other, [last], 3 * HOUR_MS)
        assert.equal((await store.refusedRequests(query)).length, 2)
        assert.equal((await store.refusedGroups(query))[0]?.requests, 2)
        await refuse(other, [], 3 * HOUR_MS + 1)
        assert.deepEqual(await store.refusedRequests(query), [last])
        assert.equal((await store.refusedGroups(query))[0]?.requests, 1)
      })
    })

    describe('accounts', () => {
      it('lists documents in pages, the newest first', async () => {
        const [one, two] = [await newWorkspace(), await newWorkspace()]
        const first = (await store.lastSequence('tax_invoice')) + 1
        const documents = [one, two, one].map((workspaceId, index) => {
          const month = parseMonth(`2020-0${index + 1}`)!
          return issued(workspaceId, first + index, {
            period: month.name,
            periodFrom: month.from,
            periodTo: month.to,
            // Later than any other document here; the first two at the same time.
            issuedAt: 5_000_000_000_000 + Math.floor(index / 2),
          })
        })
        for (const document of documents) assert.ok(await store.issueInvoice(document, 0, []))
        const [a, b, c] = documents.map(({ number }) => number)
        const page = async (workspaceId: string | undefined, before?: IssuedInvoice): Promise<string[]> =>
          (await other.newestInvoices({ workspaceId, before, limit: 2 })).map(({ number }) => number)
        assert.deepEqual(await page(undefined), [c, b])
        assert.equal((await page(undefined, documents[1]))[0], a)
        assert.deepEqual(await page(one), [c, a])
        assert.deepEqual(await page(one, documents[2]), [a])
        assert.deepEqual(await page(two, documents[1]), [])
      })

      it('sums up usage of one workspace or all over time, and of the groups that cost most', async () => {
        const [one, two] = [await newWorkspace(), await newWorkspace()]
        const day = sydneyDay(Date.UTC(2019, 4, 10))
        const row = (id: string, workspaceId: string, model: string, settledAt: number, amount: bigint): LedgerRow =>
          sampleRow(`report-${id}`, { workspaceId, model, settledAt, amount })
        await settle(
          store,
          row('1', one, 'model-a', day + 1, 1_000_000_000n),
          row('2', one, 'model-b', day + HOUR_MS, 2_000_000_000n),
          row('3', two, 'model-a', day + DAY_MS, 4_000_000_000n),
          row('4', two, 'model-c', day + 2 * DAY_MS, 8_000_000_000n),
        )
        const period = { from: day, to: day + 2 * DAY_MS, unit: 'day', groupBy: 'model' } as const
        const times = async (workspaceId: string | undefined, unit: 'hour' | 'day' = 'day') =>
          (await other.usageOverTime({ ...period, workspaceId, unit })).map(({ at, amount }) => [at - day, amount])
        assert.deepEqual(await times(undefined), [
          [0, 3_000_000_000n],
          [DAY_MS, 4_000_000_000n],
        ])
        assert.deepEqual(await times(one, 'hour'), [
          [0, 1_000_000_000n],
          [HOUR_MS, 2_000_000_000n],
        ])
        assert.deepEqual(await other.largestGroups({ ...period, workspaceId: undefined, limit: 1 }), ['model-a'])
        const series = async (
          groupBy: 'model' | 'workspace' | 'key',
          groups: readonly string[],
          workspaceId?: string,
        ) =>
          (await other.groupsOverTime({ ...period, workspaceId, groupBy, groups })).map((it) => [
            it.group,
            it.at - day,
            it.amount,
          ])
        assert.deepEqual(await series('model', ['model-a', 'none']), [
          ['model-a', 0, 1_000_000_000n],
          ['model-a', DAY_MS, 4_000_000_000n],
        ])
        assert.deepEqual(await series('model', ['model-a'], two), [['model-a', DAY_MS, 4_000_000_000n]])
        assert.deepEqual(await series('workspace', [one]), [[one, 0, 3_000_000_000n]])
        assert.deepEqual(await series('key', []), [])
      })

      it('keeps what operators set for lanes, the last of each', async () => {
        const limits = {
          tokenBudget: 1000,
          maxConcurrentRequests: 2,
          maxQueueDepth: 0,
          maxWaitMs: 4000,
          maxRequestsPerWorkspace: 3,
        }
        const set = { lane: 'meta/a@acme', limits, limitsInFile: { ...limits, tokenBudget: 1_000_000_000_000 } }
        const unlimited = { ...set, limits: { ...limits, maxRequestsPerWorkspace: undefined } }
        await store.setLaneLimits(unlimited)
        assert.deepEqual((await other.laneSettings()).limits, [unlimited])
        await store.setLaneLimits({ ...set, limits: { ...limits, maxQueueDepth: 7 } })
        await store.setLaneLimits(set)
        await store.setDrained('http://one/v1', true)
        await store.setDrained('http://one/v1', true)
        await store.setDrained('unix:/two', true)
        await store.setDrained('unix:/two', false)
        assert.deepEqual(await other.laneSettings(), { limits: [set], drained: ['http://one/v1'] })
        await store.clearLaneLimits('meta/a@acme')
        await store.setDrained('http://one/v1', false)
        assert.deepEqual(await other.laneSettings(), { limits: [], drained: [] })
      })

      it('keeps workspaces with their limits and buyers', async () => {
        const id = await newWorkspace()
        const found = async () => (await other.workspaces()).find((it) => it.id === id)
        const noBuyer = { name: null, abn: null, address: null, purchaseOrder: null, email: null }
        const created = { ...workspaceOf(id), tokensPerMinute: null, spendLimit: null, buyer: noBuyer }
        assert.deepEqual(await found(), created)
        await store.setRequestsPerMinute(id, 90)
        await store.setTokensPerMinute(id, 9000)
        await store.setSpendLimit(id, { amount: 9_007_199_254_740_993n, isSoft: true })
        await store.setBuyer(id, {
          name: 'Bücher',
          abn: '51824753556',
          address: 'a\nb',
          purchaseOrder: 'PO 7',
          email: 'a@b',
        })
        assert.deepEqual(await found(), {
          ...workspaceOf(id),
          requestsPerMinute: 90,
          tokensPerMinute: 9000,
          spendLimit: { amount: 9_007_199_254_740_993n, isSoft: true },
          buyer: { name: 'Bücher', abn: '51824753556', address: 'a\nb', purchaseOrder: 'PO 7', email: 'a@b' },
        })
        await store.setSpendLimit(id, { amount: 0n, isSoft: false })
        assert.deepEqual((await found())?.spendLimit, { amount: 0n, isSoft: false })
        await store.setSpendLimit(id, null)
        await store.setRequestsPerMinute(id, null)
        await store.setTokensPerMinute(id, null)
        await store.setBuyer(id, noBuyer)
        assert.deepEqual(await found(), created)
      })

      it('gives a name to only one workspace, even when two processes create it at once', async () => {
        const twins = [store, other].map((it, index) =>
          it.createWorkspace({ ...workspaceOf(`ws_twin_${index}`), name: 'twin' }),
        )
        const results = await Promise.allSettled(twins)
        assert.deepEqual(results.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'])
        const workspaces = await store.workspaces()
        assert.equal(workspaces.filter(({ name }) => name === 'twin').length, 1)
      })

      it('keeps keys, and the time of their first revocation', async () => {
        const workspaceId = await newWorkspace()
        const key = { ...keyOf(workspaceId), id: 'key_a', ending: 'x7Qa', name: 'for the website', expiresAt: 900 }
        await store.createKey(key)
        await store.createKey({ ...key, id: 'key_b', hash: 'hash b', name: null, expiresAt: null })
        await store.revokeKey('key_b', 7)
        await other.revokeKey('key_b', 9)
        const revoked = { ...key, id: 'key_b', hash: 'hash b', name: null, expiresAt: null, revokedAt: 7 }
        assert.deepEqual(await other.keys({ workspaceId, limit: 9 }), [revoked, key])
        assert.deepEqual([await other.key('key_b'), await other.key('key_none')], [revoked, undefined])
        const found = await other.keysByHash(['hash b', 'hash none', key.hash])
        assert.deepEqual(
          found.toSorted((one, another) => (one.id < another.id ? -1 : 1)),
          [key, revoked],
        )
      })

      it('changes the given fields of a key, unless it is revoked', async () => {
        const workspaceId = await newWorkspace()
        const key = {
          ...keyOf(workspaceId),
          id: 'key_changed',
          hash: 'hash of a changed key',
          name: 'old',
          expiresAt: 900,
        }
        await store.createKey(key)
        const changed = async (change: KeyChange) => {
          await store.changeKey('key_changed', change)
          return other.key('key_changed')
        }
        assert.deepEqual(await changed({ name: 'new' }), { ...key, name: 'new' })
        assert.deepEqual(await changed({ expiresAt: 950 }), { ...key, name: 'new', expiresAt: 950 })
        const limits = {
          requestsPerMinute: 60,
          tokensPerMinute: 9000,
          manageKeys: true,
          spendPerDay: 10n ** 18n,
          spendPerMonth: 1n,
          allowedModels: ['meta/x', 'short'],
          allowedEndpoints: ['/rerank'],
          allowedAddresses: ['10.0.0.0/8'],
        }
        const limited = { ...key, name: 'new', expiresAt: 950, ...limits }
        assert.deepEqual(await changed(limits), limited)
        assert.deepEqual(await changed({ allowedModels: null }), { ...limited, allowedModels: null })
        assert.deepEqual(await changed(noLimits), { ...key, name: 'new', expiresAt: 950 })
        await store.createKey({ ...key, ...limits, id: 'key_limited', hash: 'hash of a limited key' })
        assert.deepEqual(await other.key('key_limited'), {
          ...key,
          ...limits,
          id: 'key_limited',
          hash: 'hash of a limited key',
        })
        const last = { ...key, name: 'newest', expiresAt: null }
        assert.deepEqual(await changed({ name: 'newest', expiresAt: null }), last)
        await other.revokeKey('key_changed', 7)
        assert.deepEqual(await changed({ name: 'too late', expiresAt: 990 }), { ...last, revokedAt: 7 })
      })

      it('lists keys in pages, the newest first, of one workspace or of all', async () => {
        const workspaceId = await newWorkspace()
        const others = await newWorkspace()
        const made = (id: string, createdAt: number, owner = workspaceId, expiresAt: number | null = null) =>
          store.createKey({ ...keyOf(owner), id, hash: `hash of ${id}`, createdAt, expiresAt })
        // Two are made at the same time.
        await made('key_p1', 9001)
        await made('key_p2', 9002)
        await made('key_p3', 9002)
        await made('key_p4', 9003, workspaceId, 9500)
        await made('key_p5', 9004, others)
        await made('key_p6', 9005)
        await store.revokeKey('key_p6', 9006)
        const listed = async (query: Partial<KeyQuery>) =>
          (await other.keys({ workspaceId, limit: 2, ...query })).map(({ id }) => id)
        assert.deepEqual(await listed({}), ['key_p6', 'key_p4'])
        assert.deepEqual(await listed({ before: { createdAt: 9003, id: 'key_p4' } }), ['key_p3', 'key_p2'])
        assert.deepEqual(await listed({ before: { createdAt: 9002, id: 'key_p2' } }), ['key_p1'])
        assert.deepEqual(await listed({ validAt: 9499, limit: 9 }), ['key_p4', 'key_p3', 'key_p2', 'key_p1'])
        assert.deepEqual(await listed({ validAt: 9500, limit: 9 }), ['key_p3', 'key_p2', 'key_p1'])
        assert.deepEqual(await listed({ workspaceId: undefined }), ['key_p6', 'key_p5'])
      })

      it('numbers the changes of keys, so that what changed can be read alone', async () => {
        const workspaceId = await newWorkspace()
        const before = await store.lastKeyChange()
        const key = keyOf(workspaceId)
        await store.createKey({ ...key, id: 'key_n1', hash: 'hash n1' })
        await other.createKey({ ...key, id: 'key_n2', hash: 'hash n2' })
        const changed = async (after: number, limit = 9) =>
          (await other.keyChanges(after, limit)).map(({ number, hash }) => [number - before, hash])
        assert.deepEqual(await changed(before), [
          [1, 'hash n1'],
          [2, 'hash n2'],
        ])
        assert.deepEqual(await changed(before, 1), [[1, 'hash n1']])
        await store.revokeKey('key_n1', 5)
        // The second revocation changes nothing.
        await other.revokeKey('key_n1', 6)
        assert.deepEqual(await changed(before + 2), [[3, 'hash n1']])
        assert.equal(await other.lastKeyChange(), before + 3)
        await other.changeKey('key_n2', { name: 'renamed' })
        assert.deepEqual(await changed(before + 3), [[4, 'hash n2']])
        await Promise.all(
          Array.from({ length: 20 }, (_, index) =>
            (index % 2 ? store : other).createKey({ ...key, id: `key_m${index}`, hash: `hash m${index}` }),
          ),
        )
        const numbers = (await store.keyChanges(before + 4, 99)).map(({ number }) => number - before)
        assert.deepEqual(
          numbers,
          Array.from({ length: 20 }, (_, index) => index + 5),
        )
      })

      it('reports when the given keys were last used', async () => {
        const workspaceId = await newWorkspace()
        for (const id of ['key_u1', 'key_u2', 'key_u3']) {
          await store.createKey({ ...keyOf(workspaceId), id, hash: `hash of ${id}` })
        }
        const used = (requestId: string, keyId: string, settledAt: number) =>
          settle(store, sampleRow(requestId, { workspaceId, keyId, settledAt }))
        await used('last-used-1', 'key_u1', DAY_MS + 5)
        await used('last-used-2', 'key_u1', DAY_MS + 90)
        await used('last-used-3', 'key_u1', 7)
        await used('last-used-4', 'key_u2', DAY_MS + 60)
        assert.deepEqual([...(await other.keysLastUsed(['key_u1', 'key_u3', 'key_none']))], [['key_u1', DAY_MS + 90]])
        // A correction in a later hour is no use of the key.
        const correction = { of: 'last-used-1', reason: 'It was wrong.', creditNote: '' }
        const later = { workspaceId, keyId: 'key_u1', settledAt: 9 * DAY_MS }
        await settle(store, sampleRow('last-used-5', { ...later, amount: -5n, correction }))
        assert.deepEqual([...(await other.keysLastUsed(['key_u1']))], [['key_u1', DAY_MS + 90]])
        const sums = await other.usageSums({ keyIds: ['key_u2'], ...always, groupBy: 'key', limit: 9 })
        assert.deepEqual(
          sums.map(({ group, requests }) => [group, requests]),
          [['key_u2', 1]],
        )
      })

      it('refuses a key for a workspace that does not exist, and a key that already exists', async () => {
        const workspaceId = await newWorkspace()
        const key = { ...keyOf(workspaceId), id: 'key_c', hash: 'hash c' }
        await store.createKey(key)
        await assert.rejects(store.createKey({ ...key, id: 'key_d', hash: 'hash d', workspaceId: 'ws_none' }))
        await assert.rejects(store.createKey({ ...key, id: 'key_e' }))
      })

      it('numbers price versions in order, and adds none to a price that was changed meanwhile', async () => {
        const workspaceId = await newWorkspace()
        const version = { model: 'meta/priced', workspaceId: null, prices: { per_image: '0.04' }, effectiveFrom: 3 }
        const [first] = await store.addPriceVersions([{ ...version, latest: 0 }])
        assert.ok(first)
        const [own] = await other.addPriceVersions([{ ...version, workspaceId, prices: null, latest: 0 }])
        assert.ok(own && own > first)
        assert.deepEqual(
          await store.addPriceVersions([
            { ...version, latest: 0 },
            { ...version, workspaceId, latest: first },
          ]),
          [undefined, undefined],
        )
        const prices = await store.priceVersions()
        assert.deepEqual(
          prices.filter(({ model }) => model === 'meta/priced'),
          [
            { ...version, id: first },
            { ...version, id: own, workspaceId, prices: null },
          ],
        )
        const many = await Promise.all(
          Array.from({ length: 40 }, (_, index) =>
            (index % 2 ? store : other).addPriceVersions([{ ...version, latest: first }]),
          ),
        )
        const [second, ...more] = many.flat().filter((id) => id !== undefined)
        assert.ok(second && second > own)
        assert.deepEqual(more, [])
      })

      it('adds many price versions together, and skips prices that were changed meanwhile', async () => {
        const version = { workspaceId: null, prices: { per_image: '0.04' }, effectiveFrom: 3, latest: 0 }
        const many = Array.from({ length: 1200 }, (_, index) => ({ ...version, model: `meta/many-${index}` }))
        await store.addPriceVersions([many[700]!])
        const ids = await store.addPriceVersions(many)
        assert.deepEqual(
          ids.flatMap((id, index) => (id === undefined ? [index] : [])),
          [700],
        )
        const prices = await store.priceVersions()
        const stored = prices.filter(({ model }) => model.startsWith('meta/many-'))
        assert.equal(stored.length, 1200)
        assert.equal(stored.find(({ id }) => id === ids[1199])?.model, 'meta/many-1199')
      })
    })

    describe('ledger rows', () => {
      it('are read as they were written', async () => {
        const workspaceId = await newWorkspace()
        const full = sampleRow('full', {
          workspaceId,
          // Whatever a database may take for something of its own.
          lane: 'a "b" \\ {c,NULL} \'é$1?',
          keyId: 'NULL',
          inputTokens: 100,
          cachedInputTokens: 40,
          outputTokens: 7,
          images: 2,
          audioMs: 1500,
          estimated: true,
          outcome: 'engine_broke',
          httpStatus: 200,
          errorCode: 'upstream_error',
          amount: 9_007_199_254_740_993n,
          queueWaitMs: 12,
          firstTokenMs: null,
          durationMs: 99,
          settledAt: october.from + 5,
        })
        const capacity = sampleRow('capacity', {
          workspaceId,
          capacityMs: 3_600_000,
          httpStatus: null,
          settledAt: october.from + 6,
        })
        const correction = { of: 'full', reason: 'It was wrong.', creditNote: '' }
        const reversal = sampleRow('reversal', {
          workspaceId,
          amount: -5n,
          inputTokens: -3,
          settledAt: october.from + 7,
          correction,
        })
        await settle(store, full, capacity, reversal)
        assert.deepEqual(await everyRow(other, workspaceId), [full, capacity, reversal])
        assert.deepEqual(await other.usageRow('full'), full)
        assert.equal(await other.usageRow('nothing'), undefined)
      })

      it('do not change when they are written again, and count once', async () => {
        const workspaceId = await newWorkspace()
        const first = sampleRow('again', { workspaceId, amount: 5n, settledAt: october.from })
        await settle(store, first)
        await settle(store, { ...first, amount: 7n, settledAt: november.from }, sampleRow('more', { workspaceId }))
        await Promise.all([settle(store, first), settle(other, first)])
        assert.deepEqual(await other.usageRow('again'), first)
        const { rows, amount } = await other.usageTotal({ workspaceId, ...always, groupBy: 'model' })
        assert.deepEqual([rows, amount], [2, 10n])
      })

      it('report when the last of them was settled, even if an earlier one has a later time', async () => {
        const workspaceId = await newWorkspace()
        await settle(store, sampleRow('of-november', { workspaceId, settledAt: november.from }))
        assert.equal(await other.lastSettledAt(), november.from)
        await settle(store, sampleRow('of-october', { workspaceId, settledAt: october.from }))
        assert.equal(await other.lastSettledAt(), october.from)
      })

      it('are added all or none, together with the checkpoint of the journal', async () => {
        const workspaceId = await newWorkspace()
        const impossible = sampleRow('impossible', { workspaceId, inputTokens: 1, cachedInputTokens: 2 })
        const owner = await database.open('all-or-none')
        await assert.rejects(
          owner.addRows([sampleRow('possible', { workspaceId }), impossible], { segment: 1, offset: 100 }),
        )
        assert.deepEqual(await everyRow(store, workspaceId), [])
        assert.equal(await owner.journalPosition(), undefined)
        await owner.addRows([sampleRow('possible', { workspaceId })], { segment: 1, offset: 50 })
        assert.equal((await everyRow(store, workspaceId)).length, 1)
        await owner.addRows([], { segment: 2, offset: 7 })
        assert.deepEqual(await (await database.open('all-or-none')).journalPosition(), { segment: 2, offset: 7 })
        assert.equal(await (await database.open('another')).journalPosition(), undefined)
      })

      it('are refused permanently when no table can hold them, and only then', async () => {
        const workspaceId = await newWorkspace()
        const base = { workspaceId, settledAt: october.from }
        const impossible: Readonly<Record<string, Partial<LedgerRow>>> = {
          'more cached tokens than input': { inputTokens: 1, cachedInputTokens: 2 },
          'half a token': { outputTokens: 1.5 },
          'no number': { outputTokens: Number.NaN },
          'no end': { durationMs: Number.POSITIVE_INFINITY },
          'a missing value': { keyId: null as unknown as string },
          'a value of another kind': { lane: {} as string },
          'a function': { lane: (() => '') as unknown as string },
          'an amount of 65 bits': { amount: 2n ** 64n },
          'an amount that overflows the sums': { amount: 2n ** 63n - 1n },
          'no time': { settledAt: Number.NaN },
        }
        await settle(store, sampleRow('fills-the-sum', { ...base, amount: 2n ** 62n }))
        for (const [what, changes] of Object.entries(impossible)) {
          const row = sampleRow(what, { ...base, ...changes })
          await assert.rejects(settle(store, row), RefusedWrite, what)
          await store.setAside(row, what, october.from)
        }
        assert.deepEqual(
          (await everyRow(other, workspaceId)).map(({ requestId }) => requestId),
          ['fills-the-sum'],
        )
        const refused = (await other.refusedRows(100)).filter((it) => it.workspaceId === workspaceId)
        assert.deepEqual(
          Object.fromEntries(refused.map(({ requestId, reason }) => [requestId, reason])),
          Object.fromEntries(Object.keys(impossible).map((what) => [what, what])),
        )
        const release = await database.holdWriter()
        const locked = settle(store, sampleRow('locked', base))
        await assert.rejects(locked, (error) => !(error instanceof RefusedWrite))
        await release()
        await settle(store, sampleRow('locked', base))
      })

      it('that were set aside can be added later, once', async () => {
        const workspaceId = await newWorkspace()
        const rows = ['aside-1', 'aside-2'].map((id) =>
          sampleRow(id, {
            workspaceId,
            settledAt: october.from,
            amount: 7n,
            firstTokenMs: null,
            httpStatus: 502,
            errorCode: 'upstream_error',
          }),
        )
        const isSetAside = async (): Promise<readonly (LedgerRow | undefined)[]> =>
          (await other.refusedRows(100)).filter((it) => it.workspaceId === workspaceId).map(({ row }) => row)
        for (const [index, row] of rows.entries()) await store.setAside(row, 'a mistake', october.from - index)
        await store.setAside(rows[0]!, 'again', october.from - 9)
        assert.deepEqual(await isSetAside(), rows.toReversed(), 'the oldest first')
        assert.equal((await other.refusedRows(1)).length, 1)
        assert.deepEqual(await everyRow(other, workspaceId), [])
        await store.addRefused(rows)
        await store.addRefused(rows)
        assert.deepEqual(await isSetAside(), [])
        assert.deepEqual(await everyRow(other, workspaceId), rows)
        // An older version wrote neither a status nor an error code.
        const { httpStatus: _status, errorCode: _code, ...older } = sampleRow('aside-3', { workspaceId })
        await store.setAside(older as LedgerRow, 'a mistake', october.from)
        assert.deepEqual(await isSetAside(), [{ ...older, httpStatus: null, errorCode: null }])
        await store.addRefused([{ ...older, httpStatus: null, errorCode: null }])
        assert.deepEqual(await store.wrongSums(workspaceId), [])
      })

      it('of a closed month belong to the next one, also in the sums', async () => {
        const [closed, open] = [await newWorkspace(), await newWorkspace()]
        const at = october.to - 5
        await settle(store, sampleRow('in-time', { workspaceId: closed, settledAt: at }))
        const sequence = (await store.lastSequence('tax_invoice')) + 1
        assert.ok(await store.issueInvoice(issued(closed, sequence), 1, []))
        await settle(
          other,
          sampleRow('late', { workspaceId: closed, settledAt: at, amount: 3n }),
          sampleRow('later', { workspaceId: closed, settledAt: november.from + 9, amount: 4n }),
          sampleRow('elsewhere', { workspaceId: open, settledAt: at }),
        )
        const settledAt = async (id: string) => (await store.usageRow(id))?.settledAt
        assert.equal(await settledAt('in-time'), at)
        assert.equal(await settledAt('late'), october.to)
        assert.equal(await settledAt('later'), november.from + 9)
        assert.equal(await settledAt('elsewhere'), at)
        const sums = await store.pricedSums(closed, november.from, november.from + DAY_MS, '')
        assert.deepEqual(
          sums.map(({ rows, amount }) => [rows, amount]),
          [[2, 7n]],
        )
        assert.deepEqual(await store.wrongSums(closed), [])
      })

      it('are found by period, model, price and note, in pages', async () => {
        const workspaceId = await newWorkspace()
        // Several of one moment, so that a page ends between them.
        const rows = Array.from({ length: 9 }, (_, index) =>
          sampleRow(`page-${index}`, {
            workspaceId,
            settledAt: october.from + Math.floor(index / 4),
            model: index % 2 ? 'meta/odd' : 'meta/even',
            priceVersion: index % 3,
          }),
        )
        await settle(store, ...rows.toReversed())
        const asked = { workspaceId, ...always }
        const pages: LedgerRow[] = []
        for (let page: readonly LedgerRow[] = []; ;) {
          const last = pages.at(-1)
          page = await other.usage({ ...asked, limit: 3, ...(last ? { after: last } : {}) })
          pages.push(...page)
          if (page.length < 3) break
        }
        assert.deepEqual(pages, rows)
        const ids = async (changes: object): Promise<string[]> =>
          (await other.usage({ ...asked, limit: 100, ...changes })).map(({ requestId }) => requestId)
        assert.deepEqual(await ids({ from: october.from + 2 }), ['page-8'])
        assert.deepEqual(await ids({ to: october.from + 1, model: 'meta/odd' }), ['page-1', 'page-3'])
        assert.deepEqual(await ids({ priceVersions: [1, 2], model: 'meta/even' }), ['page-2', 'page-4', 'page-8'])
        assert.equal((await ids({ creditNote: '' })).length, 9)
        assert.deepEqual(await ids({ creditNote: 'ADJ-1' }), [])
      })

      it('of one model or key are found in pages, wherever a page begins and ends', async () => {
        const workspaceId = await newWorkspace()
        const rows = Array.from({ length: 120 }, (_, index) =>
          sampleRow(`sparse-${String(index).padStart(3, '0')}`, {
            workspaceId,
            // Some hours have many rows, some one, some none; several rows are of one moment.
            settledAt: october.from + Math.floor(index / 40) * 50 * HOUR_MS + Math.floor(index / 2) * 7 * 60_000,
            model: index % 5 ? 'meta/common' : 'meta/rare',
            keyId: index % 7 ? 'key_common' : 'key_rare',
            priceVersion: index % 2,
          }),
        )
        await settle(store, ...rows)
        for (const filter of [
          { model: 'meta/common' },
          { model: 'meta/rare' },
          { model: 'meta/none' },
          { keyId: 'key_rare' },
          { keyId: 'key_none' },
          { model: 'meta/rare', keyId: 'key_common' },
        ]) {
          for (const limit of [1, 2, 3, 10, 500]) {
            for (const from of [0, october.from + 20 * 60_000, october.from + 51 * HOUR_MS]) {
              const asked = {
                workspaceId,
                ...filter,
                limit,
                from,
                to: october.from + 101 * HOUR_MS,
                priceVersions: [0],
              }
              const found: LedgerRow[] = []
              for (let page: readonly LedgerRow[] = []; ;) {
                page = await other.usage({ ...asked, after: found.at(-1) })
                found.push(...page)
                if (page.length < limit) break
              }
              const expected = rows.filter(
                (row) =>
                  fits(row, filter) && row.priceVersion === 0 && row.settledAt >= from && row.settledAt < asked.to,
              )
              assert.deepEqual(found, expected, `${JSON.stringify(filter)}, ${limit} from ${from}`)
            }
          }
        }
      })
    })

    describe('sums', () => {
      it('match the rows, however many processes write at once', async () => {
        const workspaceIds = [await newWorkspace(), await newWorkspace()]
        const rows = Array.from({ length: 300 }, (_, index) =>
          sampleRow(`sum-${index}`, {
            workspaceId: workspaceIds[index % 2]!,
            model: `meta/${index % 3}`,
            keyId: `key_${index % 4}`,
            priceVersion: index % 2,
            inputTokens: index,
            estimated: index % 5 === 0,
            amount: BigInt(index) * 1_000_000_000_001n,
            settledAt: october.from + index * 7 * HOUR_MS,
          }),
        )
        const batches = Array.from({ length: 60 }, (_, index) => rows.slice(index * 5, index * 5 + 5))
        await Promise.all(batches.map((batch, index) => settle(index % 2 ? store : other, ...batch)))
        for (const workspaceId of workspaceIds) assert.deepEqual(await store.wrongSums(workspaceId), [])

        const [workspaceId] = workspaceIds as [string]
        const own = rows.filter((row) => row.workspaceId === workspaceId)
        await sumsMatch({ workspaceId, ...always }, own)
        for (const hours of [1, 10, 24, 100, 24 * 31 + 1]) {
          const period = { from: october.from + 3 * HOUR_MS, to: october.from + (3 + hours) * HOUR_MS }
          const within = own.filter(({ settledAt }) => settledAt >= period.from && settledAt < period.to)
          await sumsMatch({ workspaceId, ...period }, within)
        }
      })

      /** Of the same rows by every grouping, and in total. */
      async function sumsMatch(asked: Pick<SumsQuery, 'workspaceId' | 'from' | 'to'>, rows: readonly LedgerRow[]) {
        const groups = {
          workspace: (row: LedgerRow) => row.workspaceId,
          model: (row: LedgerRow) => row.model,
          key: (row: LedgerRow) => row.keyId,
        }
        for (const [groupBy, groupOf] of Object.entries(groups)) {
          const found = await store.usageSums({ ...asked, groupBy: groupBy as 'model', limit: 100 })
          const expected = [...Map.groupBy(rows, groupOf)].toSorted(([one], [another]) => (one < another ? -1 : 1))
          assert.deepEqual(
            found.map((it) => [it.group, it.rows, it.requests, it.estimatedRequests, it.inputTokens, it.amount]),
            expected.map(([group, of]) => [
              group,
              of.length,
              of.length,
              of.filter(({ estimated }) => estimated).length,
              of.reduce((sum, { inputTokens }) => sum + BigInt(inputTokens), 0n),
              of.reduce((sum, { amount }) => sum + amount, 0n),
            ]),
          )
        }
        const total = await store.usageTotal({ ...asked, groupBy: 'model' })
        assert.deepEqual([total.rows, total.amount], [rows.length, rows.reduce((sum, { amount }) => sum + amount, 0n)])
      }

      it('by day begin at midnight in Sydney, and are read in pages', async () => {
        const workspaceId = await newWorkspace()
        // The clocks go forward on 4 October, so that day has 23 hours.
        const days = Array.from({ length: 6 }, (_, index) => sydneyDay(october.from + index * DAY_MS + 2 * HOUR_MS))
        for (const [index, day] of days.entries()) {
          const next = days[index + 1] ?? day + DAY_MS
          await settle(
            store,
            sampleRow(`day-${index}-first`, { workspaceId, settledAt: day }),
            sampleRow(`day-${index}-last`, { workspaceId, settledAt: next - 1 }),
          )
        }
        const asked = { workspaceId, ...always, groupBy: 'day' as const }
        const first = await other.usageSums({ ...asked, limit: 4 })
        const second = await other.usageSums({ ...asked, limit: 4, after: first.at(-1)!.group })
        assert.deepEqual(
          [...first, ...second].map(({ group, rows }) => [group, rows]),
          days.map((day) => [day, 2]),
        )
      })

      it('may exceed 64 bits', async () => {
        const workspaceId = await newWorkspace()
        const amount = 9_000_000_000_000_000_000n
        await settle(
          store,
          sampleRow('rich-1', { workspaceId, amount, model: 'meta/a' }),
          sampleRow('rich-2', { workspaceId, amount, model: 'meta/b' }),
          sampleRow('rich-3', { workspaceId, amount, model: 'meta/b', priceVersion: 2 }),
        )
        const { amount: total } = await other.usageTotal({ workspaceId, ...always, groupBy: 'model' })
        assert.equal(total, 3n * amount)
      })

      it('count neither corrections nor reserved capacity as requests', async () => {
        const workspaceId = await newWorkspace()
        const correction = { of: 'counted', reason: 'Wrong.', creditNote: '' }
        await settle(store, sampleRow('counted', { workspaceId, estimated: true }))
        await settle(
          store,
          sampleRow('counted-back', { workspaceId, amount: -5n, estimated: true, correction }),
          sampleRow('counted-capacity', { workspaceId, capacityMs: 1000 }),
        )
        const sums = await store.usageTotal({ workspaceId, ...always, groupBy: 'model' })
        assert.deepEqual(
          [sums.rows, sums.requests, sums.estimatedRequests, sums.capacityMs, sums.amount],
          [3, 1, 1, 1000n, 5n],
        )
      })
    })

    /** A workspace with so many rows in October. */
    async function workspaceWithRows(count: number): Promise<string> {
      const workspaceId = await newWorkspace()
      const rows = Array.from({ length: count }, (_, index) =>
        sampleRow(`${workspaceId}-${index}`, {
          workspaceId,
          settledAt: october.from + index,
          amount: BigInt(index + 1),
          inputTokens: 10,
        }),
      )
      await settle(store, ...rows)
      return workspaceId
    }
    /** Takes back rows of the invoice for October. */
    const ofMonth = (requestIds: readonly string[] | null, reason: string): Reversal => ({
      rowsOf: [''],
      creditsOf: [],
      from: october.from,
      to: october.to,
      requestIds,
      reason,
    })
    const nextSequence = async (kind: IssuedInvoice['kind'] = 'tax_invoice'): Promise<number> =>
      (await store.lastSequence(kind)) + 1

    function noteOf(workspaceId: string, sequence: number, rows: number): IssuedInvoice {
      const note = issued(workspaceId, sequence, { kind: 'adjustment_note' })
      return { ...note, document: { ...note.document, ledger_rows: rows } }
    }
    const unfinishedNote = async (from: Store = store): Promise<UnfinishedNote> =>
      (await from.unfinishedNote()) ?? assert.fail('no note is unfinished')

    /** A note as it is issued: begun, continued a row at a time, finished. */
    async function issueNote(note: IssuedInvoice, rowsExpected: number, reversal: Reversal): Promise<boolean> {
      if (!(await store.beginNote(note, rowsExpected, reversal))) return false
      for (;;) {
        if (!(await store.continueNote(await unfinishedNote(other), 1))) break
      }
      return store.finishNote(note)
    }

    describe('invoices', () => {
      it('are issued with their rows for reserved capacity, and found again', async () => {
        const workspaceId = await workspaceWithRows(2)
        const invoice = issued(workspaceId, await nextSequence())
        const capacity = sampleRow(`${workspaceId}-capacity`, {
          workspaceId,
          capacityMs: 5,
          settledAt: october.to - 1,
        })
        assert.equal(await store.issueInvoice(invoice, 2, [capacity]), true)
        assert.deepEqual(await other.usageRow(capacity.requestId), capacity)
        assert.deepEqual(await other.invoices({ workspaceId }), [invoice])
        assert.deepEqual(await other.invoices({ number: invoice.number }), [invoice])
        assert.deepEqual(await other.invoices({ workspaceId: 'ws_none', number: invoice.number }), [])
        assert.ok((await other.invoices()).some(({ number }) => number === invoice.number))
        assert.equal(await other.lastSequence('tax_invoice'), invoice.sequence)
        assert.deepEqual(await other.sellers(), [invoice.sellerAbn])
        assert.deepEqual(await store.wrongSums(workspaceId), [])
      })

      it('are missing for a month of a workspace until they are issued', async () => {
        const [used, unused] = [await workspaceWithRows(1), await workspaceWithRows(0)]
        const open = async () =>
          (await other.notInvoiced(october)).filter(({ workspaceId }) => [used, unused].includes(workspaceId))
        assert.deepEqual(
          new Set((await open()).map(({ workspaceId, hasRows }) => `${workspaceId} ${hasRows}`)),
          new Set([`${used} true`, `${unused} false`]),
        )
        assert.ok(
          (await other.notInvoiced(november)).every(({ hasRows, workspaceId }) => workspaceId !== used || !hasRows),
        )
        assert.ok(await store.issueInvoice(issued(used, await nextSequence()), 1, []))
        assert.deepEqual(await open(), [{ workspaceId: unused, hasRows: false }])
      })

      it('are refused, without any effect, if they are not the next, or have another seller or other rows', async () => {
        const workspaceId = await workspaceWithRows(3)
        const next = await nextSequence()
        const capacity = sampleRow(`${workspaceId}-capacity`, { workspaceId, capacityMs: 5, settledAt: october.to - 1 })
        const wrong: readonly [IssuedInvoice, number][] = [
          [issued(workspaceId, next + 1), 3],
          [issued(workspaceId, next - 1, { number: 'INV-again' }), 3],
          [issued(workspaceId, next, { sellerAbn: '83914571673' }), 3],
          [issued(workspaceId, next), 2],
          [issued(workspaceId, next), 4],
        ]
        for (const [invoice, rows] of wrong) {
          assert.equal(await store.issueInvoice(invoice, rows, [capacity]), false)
        }
        assert.equal(await store.usageRow(capacity.requestId), undefined)
        assert.deepEqual(await store.invoices({ workspaceId }), [])
        assert.equal(await store.issueInvoice(issued(workspaceId, next), 3, [capacity]), true)
        const again = issued(workspaceId, next + 1)
        assert.equal(await store.issueInvoice(again, 4, []), false, 'a month has one invoice')
      })

      it('use each number once, when two processes issue at once', async () => {
        for (let round = 0; round < 10; round++) {
          const [one, two] = [await workspaceWithRows(1), await workspaceWithRows(1)]
          const sequence = await nextSequence()
          const results = await Promise.all([
            store.issueInvoice(issued(one, sequence), 1, []),
            other.issueInvoice(issued(two, sequence, { number: `INV-${sequence}-other` }), 1, []),
          ])
          assert.equal(results.filter((isIssued) => isIssued).length, 1)
        }
        const sequences = (await store.invoices())
          .filter(({ kind }) => kind === 'tax_invoice')
          .map(({ sequence }) => sequence)
        assert.deepEqual(
          sequences.toSorted((one, another) => one - another),
          sequences.map((_, index) => index + 1),
        )
      })

      it('include every row of their month, and a row that arrives meanwhile belongs to the next month', async () => {
        for (let round = 0; round < 20; round++) {
          const workspaceId = await workspaceWithRows(1)
          const row = sampleRow(`${workspaceId}-meanwhile`, { workspaceId, settledAt: october.to - 1 })
          const invoice = issued(workspaceId, await nextSequence())
          // Sometimes the row is first for sure, sometimes it is a race.
          const settling = settle(other, row)
          if (round % 2) await settling
          const [isIssued] = await Promise.all([store.issueInvoice(invoice, 1, []), settling])
          const settledAt = (await store.usageRow(row.requestId))?.settledAt
          assert.equal(settledAt, isIssued ? october.to : october.to - 1)
          if (!isIssued) assert.ok(await store.issueInvoice(invoice, 2, []))
        }
      })

      it('are adjusted by notes, which reverse each row once', async () => {
        const workspaceId = await workspaceWithRows(4)
        const id = (index: number): string => `${workspaceId}-${index}`
        assert.ok(await store.issueInvoice(issued(workspaceId, await nextSequence()), 4, []))
        const reversible = async (ids: readonly string[] | null) =>
          (await store.reversible(workspaceId, october, ofMonth(ids, ''))).sums.map(({ rows, amount }) => [
            rows,
            amount,
          ])
        assert.deepEqual(await reversible(null), [[4, 10n]])
        assert.deepEqual(await reversible([id(0), id(2), 'nothing']), [[2, 4n]])

        const note = noteOf(workspaceId, await nextSequence('adjustment_note'), 2)
        assert.ok(await issueNote(note, 4, ofMonth([id(0), id(2)], 'Blank.')))
        const taken = await other.usage({ workspaceId, ...always, limit: 9, creditNote: note.number })
        assert.deepEqual(
          taken.map(({ requestId, amount, inputTokens, settledAt, correction }) => ({
            requestId,
            amount,
            inputTokens,
            settledAt,
            correction,
          })),
          [0, 2].map((index) => ({
            requestId: `${note.number}:${id(index)}`,
            amount: -BigInt(index + 1),
            inputTokens: -10,
            settledAt: note.issuedAt,
            correction: { of: id(index), reason: 'Blank.', creditNote: note.number },
          })),
        )
        assert.deepEqual(await reversible(null), [[2, 6n]])
        assert.deepEqual(await reversible([id(0)]), [])

        const rest = noteOf(workspaceId, note.sequence + 1, 2)
        assert.equal(await issueNote(rest, 3, ofMonth(null, 'All.')), false, 'other rows')
        assert.ok(await issueNote(rest, 4, ofMonth(null, 'All.')))
        assert.deepEqual(await reversible(null), [])
        const [ofNote] = await store.pricedSums(workspaceId, note.periodFrom, note.periodTo + DAY_MS, rest.number)
        assert.deepEqual([ofNote?.rows, ofNote?.amount], [2, -6n])
        const total = await store.usageTotal({ workspaceId, ...always, groupBy: 'model', creditNote: '' })
        assert.deepEqual([total.rows, total.amount], [4, 10n])
        assert.deepEqual(await store.wrongSums(workspaceId), [])
      })
    })

    describe('e-mails', () => {
      const withAddress = { name: null, abn: null, address: null, purchaseOrder: null, email: 'a@b.example' }
      const at = november.from
      const outcome = { state: 'sent', nextAttemptAt: at, sentAt: at + 5, lastError: null } as const

      async function issuedTo(buyer: typeof withAddress | undefined, isMailed = true): Promise<string> {
        const workspaceId = await workspaceWithRows(1)
        if (buyer) await store.setBuyer(workspaceId, buyer)
        const invoice = issued(workspaceId, await nextSequence())
        assert.ok(await store.issueInvoice(invoice, 1, [], { isMailed }))
        return invoice.number
      }
      /** Leaves nothing for the next test. */
      async function claimAll(from: Store, now: number): Promise<readonly string[]> {
        const numbers: string[] = []
        for (;;) {
          const claimed = await from.claimEmail(now, now + 100)
          if (!claimed) return numbers
          assert.ok(!numbers.includes(claimed.number), 'claimed twice')
          numbers.push(claimed.number)
          await from.finishEmail(claimed, outcome)
        }
      }

      it('are queued with the document that they are for, if its buyer has an address and e-mail is sent', async () => {
        const [without, unsent, queued] = [
          await issuedTo(undefined),
          await issuedTo(withAddress, false),
          await issuedTo(withAddress),
        ]
        const found = await other.emails([without, unsent, queued])
        const email = { recipient: 'a@b.example', state: 'queued', attempts: 0, sentAt: null, lastError: null }
        assert.deepEqual(found, [{ number: queued, ...email, nextAttemptAt: at }])
        assert.deepEqual(await claimAll(store, at), [queued])
        assert.deepEqual(await other.emails([queued]), [{ ...found[0], ...outcome, attempts: 1 }])
      })

      it('are not queued by an invoice that is refused', async () => {
        const workspaceId = await workspaceWithRows(1)
        await store.setBuyer(workspaceId, withAddress)
        const invoice = issued(workspaceId, await nextSequence())
        assert.equal(await store.issueInvoice(invoice, 2, [], { isMailed: true }), false)
        assert.deepEqual(await store.emails([invoice.number]), [])
      })

      it('are claimed by one of two processes, until the lease ends', async () => {
        const number = await issuedTo(withAddress)
        assert.equal(await store.claimEmail(at - 1, at), undefined, 'not due yet')
        const both = await Promise.all([store.claimEmail(at, at + 100), other.claimEmail(at, at + 100)])
        const [claimed, ...more] = both.filter((it) => it !== undefined)
        assert.deepEqual([claimed, more], [{ number, recipient: 'a@b.example', attempts: 1, leaseUntil: at + 100 }, []])
        assert.equal(await other.claimEmail(at + 99, at + 300), undefined)
        assert.equal(await other.queueEmail(number, 'c@d.example', at + 99), false)
        const again = await other.claimEmail(at + 100, at + 300)
        assert.deepEqual([again?.number, again?.attempts], [number, 2])
        await store.finishEmail(claimed!, outcome)
        assert.equal((await store.emails([number]))[0]?.state, 'queued', 'the first lease has ended')
        await other.finishEmail(again!, { ...outcome, state: 'queued', nextAttemptAt: at + 500, sentAt: null })
        assert.deepEqual(await claimAll(store, at + 499), [])
        assert.deepEqual(await claimAll(store, at + 500), [number])
      })

      it('are claimed in the order in which they are due, and by their numbers when that is the same', async () => {
        const numbers = [await issuedTo(undefined), await issuedTo(undefined), await issuedTo(undefined)] as const
        const [first, second, third] = numbers
        for (const [number, due] of [
          [third, at + 1],
          [second, at + 1],
          [first, at + 2],
        ] as const) {
          assert.ok(await store.queueEmail(number, 'c@d.example', due))
        }
        assert.deepEqual(await claimAll(other, at + 2), [second, third, first])
      })

      it('are queued again on request, to the address of now', async () => {
        const number = await issuedTo(undefined)
        assert.equal(await store.queueEmail(number, 'c@d.example', at), true)
        const refused = (await store.claimEmail(at, at + 5)) ?? assert.fail()
        await store.finishEmail(refused, { ...outcome, state: 'failed', lastError: 'no such mailbox' })
        assert.equal(await store.queueEmail(number, 'e@f.example', at + 10), true)
        const email = { recipient: 'e@f.example', state: 'queued', attempts: 0, sentAt: null, lastError: null }
        assert.deepEqual(await other.emails([number]), [{ number, ...email, nextAttemptAt: at + 10 }])
        assert.deepEqual(await claimAll(store, at + 10), [number])
      })
    })

    describe('payments', () => {
      /** A document with amounts; of a note: of the invoice that it adjusts. */
      async function issuedWith(workspaceId: string, amounts: Partial<IssuedInvoice['document']>) {
        const kind = amounts.adjusts === undefined ? 'tax_invoice' : 'adjustment_note'
        const plain = issued(workspaceId, await nextSequence(kind), { kind })
        const document = { ...plain, document: { ...plain.document, ...amounts } }
        assert.ok(await store.issueInvoice(document, 1, []))
        return document.number
      }
      const invoiceOf = async (total: string, lines_total = '100.00') => {
        const workspaceId = await workspaceWithRows(1)
        return { workspaceId, number: await issuedWith(workspaceId, { total, lines_total, due: '2026-11-15' }) }
      }
      const owed = async (number: string, today = '2026-11-15') => {
        const [receivable] = await other.receivables([number, 'INV-none'], today)
        assert.ok(receivable)
        return [receivable.state, receivable.total, receivable.credited, receivable.paid]
      }
      const payment = (number: string, amount: bigint, reference = 'bank 1') => ({
        number,
        amount,
        paidOn: '2026-11-10',
        reference,
        recordedAt: 5,
      })

      it('are due until the end of the due day, and then overdue; part by part they become paid', async () => {
        const { number } = await invoiceOf('110.00')
        assert.deepEqual(await owed(number), ['due', 11_000n, 0n, 0n])
        assert.deepEqual(await owed(number, '2026-11-16'), ['overdue', 11_000n, 0n, 0n])
        assert.equal(await store.addPayment(payment(number, 5000n), 11_000n), true)
        assert.deepEqual(await owed(number, '2026-11-16'), ['overdue', 11_000n, 0n, 5000n])
        assert.equal(await store.addPayment(payment(number, 6000n, 'bank 2'), 6000n), true)
        assert.deepEqual(await owed(number, '2026-11-16'), ['paid', 11_000n, 0n, 11_000n])
        assert.deepEqual(await other.payments([number]), [
          { ...payment(number, 5000n), sequence: 1 },
          { ...payment(number, 6000n, 'bank 2'), sequence: 2 },
        ])
      })

      it('are refused if something else is due than expected, or the same payment is there', async () => {
        const { number } = await invoiceOf('110.00')
        assert.equal(await store.addPayment(payment(number, 11_000n), 10_999n), false)
        assert.equal(await store.addPayment(payment('INV-none', 1n), 1n), false)
        assert.equal(await store.addPayment(payment(number, 1000n), 11_000n), true)
        assert.equal(await store.addPayment(payment(number, 1000n), 10_000n), false, 'the same payment')
        assert.deepEqual(await owed(number), ['due', 11_000n, 0n, 1000n])
        const both = await Promise.all([
          store.addPayment(payment(number, 10_000n, 'one'), 10_000n),
          other.addPayment(payment(number, 10_000n, 'two'), 10_000n),
        ])
        assert.equal(both.filter((isAdded) => isAdded).length, 1)
        assert.deepEqual(await owed(number), ['paid', 11_000n, 0n, 11_000n])
      })

      it('are removed once, never get their number again, and can be recorded again', async () => {
        const { number } = await invoiceOf('110.00')
        assert.ok(await store.addPayment(payment(number, 11_000n), 11_000n))
        assert.equal(await store.removePayment(number, 2, 9), false)
        assert.equal(await store.removePayment(number, 1, 9), true)
        assert.equal(await store.removePayment(number, 1, 9), false)
        assert.deepEqual([await owed(number), await other.payments([number])], [['due', 11_000n, 0n, 0n], []])
        assert.ok(await store.addPayment(payment(number, 11_000n), 11_000n))
        assert.deepEqual(
          (await other.payments([number])).map(({ sequence }) => sequence),
          [2],
        )
      })

      it('and credits make up what is owed: less, nothing, or a refund', async () => {
        const { workspaceId, number } = await invoiceOf('110.00')
        const credit = (total: string, lines_total: string) =>
          issuedWith(workspaceId, { adjusts: number, total, lines_total })
        const note = await credit('-27.50', '-25.00')
        assert.deepEqual(await owed(number), ['due', 11_000n, 2750n, 0n])
        assert.deepEqual(await other.receivables([note], '2026-11-15'), [], 'a note is owed nothing')
        assert.ok(await store.addPayment(payment(number, 8250n), 8250n))
        assert.equal((await owed(number))[0], 'paid')
        await credit('-82.50', '-75.00')
        assert.deepEqual(await owed(number), ['refund_due', 11_000n, 11_000n, 8250n])
        assert.ok(await store.addPayment(payment(number, -8250n, 'back'), -8250n))
        assert.deepEqual(await owed(number), ['credited', 11_000n, 11_000n, 0n])
      })

      it('leave no cent open if the notes of an invoice were rounded to less or more than it', async () => {
        for (const totals of [
          ['-0.01', '-0.02'],
          ['-0.03', '-0.02'],
        ]) {
          const { workspaceId, number } = await invoiceOf('0.04', '12345678901.035000000001')
          await issuedWith(workspaceId, { adjusts: number, total: totals[0]!, lines_total: '-12345678901.02' })
          assert.equal((await owed(number))[0], 'due')
          await issuedWith(workspaceId, { adjusts: number, total: totals[1]!, lines_total: '-0.015000000001' })
          assert.deepEqual(await owed(number), ['credited', 4n, 4n, 0n])
        }
      })

      it('decide which invoices a list of one state has', async () => {
        const [one, two] = [await invoiceOf('110.00'), await invoiceOf('55.00')]
        const inState = async (is: InvoiceState, today: string, workspaceId: string) =>
          (await other.newestInvoices({ workspaceId, before: undefined, state: { is, today }, limit: 9 })).map(
            ({ number }) => number,
          )
        assert.deepEqual(await inState('due', '2026-11-15', one.workspaceId), [one.number])
        assert.deepEqual(await inState('overdue', '2026-11-15', one.workspaceId), [])
        assert.deepEqual(await inState('overdue', '2026-11-16', two.workspaceId), [two.number])
        assert.ok(await store.addPayment(payment(two.number, 5500n), 5500n))
        assert.deepEqual(await inState('overdue', '2026-11-16', two.workspaceId), [])
        assert.deepEqual(await inState('paid', '2026-11-16', two.workspaceId), [two.number])
      })
    })

    describe('an adjustment note that is not finished', () => {
      const all = ofMonth(null, 'All.')

      /** An invoiced month of five rows, and a note that takes all of them back. */
      async function begunNote() {
        const workspaceId = await workspaceWithRows(5)
        assert.ok(await store.issueInvoice(issued(workspaceId, await nextSequence()), 5, []))
        const note = noteOf(workspaceId, await nextSequence('adjustment_note'), 5)
        assert.ok(await store.beginNote(note, 5, all))
        return { workspaceId, note }
      }
      const finish = async (note: IssuedInvoice): Promise<void> => {
        while (await store.continueNote(await unfinishedNote(), 2)) {
          // Until none are left.
        }
        assert.ok(await store.finishNote(note))
        assert.equal(await store.unfinishedNote(), undefined)
      }
      /** Everything that a reader sees of a workspace. */
      const seen = async (workspaceId: string): Promise<object> => ({
        rows: await other.usage({ workspaceId, ...always, limit: 99 }),
        total: await other.usageTotal({ workspaceId, ...always, groupBy: 'model' }),
        sums: await other.usageSums({ workspaceId, ...always, groupBy: 'day', limit: 99 }),
        invoices: await other.invoices({ workspaceId }),
      })

      it('is not visible, and then becomes visible as a whole', async () => {
        const { workspaceId, note } = await begunNote()
        const before = await seen(workspaceId)
        for (let rows = 0; rows < 4; rows += 2) {
          assert.ok(await store.continueNote(await unfinishedNote(), 2))
          assert.deepEqual(await seen(workspaceId), before)
          const reversal = `${note.number}:${workspaceId}-0`
          assert.equal(await other.usageRow(reversal), undefined)
          assert.deepEqual(await other.usageRows([reversal]), [])
          assert.deepEqual(await other.wrongSums(workspaceId), [])
        }
        await finish(note)
        const rows = await other.usage({ workspaceId, ...always, limit: 99 })
        assert.deepEqual([rows.length, rows.reduce((sum, { amount }) => sum + amount, 0n)], [10, 0n])
        const { rows: summed, amount } = await other.usageTotal({ workspaceId, ...always, groupBy: 'model' })
        assert.deepEqual([summed, amount], [10, 0n])
        assert.equal((await other.usageRows([`${note.number}:${workspaceId}-0`, `${workspaceId}-0`])).length, 2)
        assert.deepEqual((await other.invoices({ number: note.number }))[0], note)
        assert.deepEqual(await other.wrongSums(workspaceId), [])
      })

      it('can be continued by any process, and no row is reversed twice', async () => {
        const { workspaceId, note } = await begunNote()
        const stale = await unfinishedNote()
        assert.deepEqual([stale.note, stale.reversal], [note, all])
        await Promise.all([store, other, store, other].map((it) => it.continueNote(stale, 2)))
        await store.continueNote(stale, 5)
        const { after } = await unfinishedNote(other)
        assert.equal(after.requestId, `${workspaceId}-1`, 'two rows were looked at, once')
        await finish(note)
        await store.continueNote(stale, 5)
        assert.equal((await store.usage({ workspaceId, ...always, limit: 99 })).length, 10)
      })

      it('reads no more rows at a time than its limit, even if most are already reversed', async () => {
        const workspaceId = await workspaceWithRows(9)
        const ids = Array.from({ length: 8 }, (_, index) => `${workspaceId}-${index}`)
        assert.ok(await store.issueInvoice(issued(workspaceId, await nextSequence()), 9, []))
        const first = noteOf(workspaceId, await nextSequence('adjustment_note'), 8)
        assert.ok(await issueNote(first, 9, ofMonth([...ids, ...ids].toReversed(), 'Most.')))
        const rest = noteOf(workspaceId, first.sequence + 1, 1)
        assert.ok(await store.beginNote(rest, 9, all))
        let slices = 0
        while (await store.continueNote(await unfinishedNote(), 3)) slices++
        assert.equal(slices, 3)
        assert.ok(await store.finishNote(rest))
      })

      it('keeps others from starting one, and cannot be finished without its rows', async () => {
        const { workspaceId, note } = await begunNote()
        assert.equal(await store.finishNote(note), false)
        assert.ok(await store.continueNote(await unfinishedNote(), 4))
        assert.equal(await store.finishNote(note), false)
        assert.deepEqual(await store.invoices({ number: note.number }), [])
        for (const sequence of [note.sequence, note.sequence + 1]) {
          assert.equal(await other.beginNote(noteOf(workspaceId, sequence, 5), 5, all), false)
        }
        await finish(note)
        assert.equal(await other.finishNote(note), false, 'it is finished already')
      })

      it('keeps its number if it is an invoice that replaces another one', async () => {
        const workspaceId = await workspaceWithRows(1)
        const first = issued(workspaceId, await nextSequence())
        assert.ok(await store.issueInvoice(first, 1, []))
        const credit = noteOf(workspaceId, await nextSequence('adjustment_note'), 1)
        assert.ok(await issueNote(credit, 1, all))
        const invoice = issued(workspaceId, await nextSequence())
        const again = { ...invoice, document: { ...invoice.document, ledger_rows: 1, replaces: first.number } }
        const reversal = { ...all, rowsOf: [credit.number], from: credit.issuedAt, to: credit.issuedAt + 1 }
        assert.ok(await store.beginNote(again, 1, reversal))
        const elsewhere = await workspaceWithRows(1)
        const meanwhile = issued(elsewhere, again.sequence, { number: 'INV-other' })
        assert.equal(await store.issueInvoice(meanwhile, 1, []), false, 'the number is taken')
        let slices = 0
        while (await store.continueNote(await unfinishedNote(), 9)) slices++
        assert.ok(slices > 0)
        assert.ok(await store.finishNote(again))
        assert.deepEqual((await store.usage({ workspaceId, ...always, limit: 9, creditNote: again.number })).length, 1)
        assert.ok(await store.issueInvoice(issued(elsewhere, again.sequence + 1), 1, []))
      })

      it('is refused, like an invoice, if it is not the next or has other rows', async () => {
        const workspaceId = await workspaceWithRows(1)
        assert.ok(await store.issueInvoice(issued(workspaceId, await nextSequence()), 1, []))
        const next = await nextSequence('adjustment_note')
        assert.equal(await store.beginNote(noteOf(workspaceId, next + 1, 1), 1, all), false)
        assert.equal(await store.beginNote(noteOf(workspaceId, next, 1), 2, all), false)
        const stranger = { ...noteOf(workspaceId, next, 1), sellerAbn: '83914571673' }
        assert.equal(await store.beginNote(stranger, 1, all), false)
        assert.equal(await store.unfinishedNote(), undefined)
      })
    })

    describe('a correction', () => {
      it('is added once to an open month, and not to one that has been invoiced', async () => {
        const workspaceId = await workspaceWithRows(2)
        const reversal = (index: number): LedgerRow =>
          sampleRow(`correction:${workspaceId}-${index}`, {
            workspaceId,
            settledAt: october.from + index,
            amount: -BigInt(index + 1),
            correction: { of: `${workspaceId}-${index}`, reason: 'Twice.', creditNote: '' },
          })
        assert.equal(await store.correctRow(reversal(0)), true)
        assert.equal(await other.correctRow(reversal(0)), false)
        assert.ok(await store.issueInvoice(issued(workspaceId, await nextSequence()), 3, []))
        assert.equal(await store.correctRow(reversal(1)), false)
        assert.equal((await store.usage({ workspaceId, ...always, limit: 9 })).length, 3)
        assert.deepEqual(await store.wrongSums(workspaceId), [])
      })
    })

    describe('arrivals', () => {
      it('are those of a lane, in the order of admission, with the time before the wait', async () => {
        const workspaceId = await newWorkspace()
        const at = october.from
        const rows = [3, 1, 2, 0].map((index) =>
          sampleRow(`arrival-${index}`, {
            workspaceId,
            lane: 'lane/a',
            startedAt: at + index * 10,
            queueWaitMs: index,
            inputTokens: index,
            outputTokens: index * 2,
            durationMs: 40,
            firstTokenMs: index === 0 ? null : 5,
          }),
        )
        const others = { workspaceId, lane: 'lane/a', startedAt: at + 5 }
        await settle(
          store,
          ...rows,
          sampleRow('arrival-elsewhere', { workspaceId, lane: 'lane/b', startedAt: at }),
          sampleRow('arrival-capacity', { ...others, capacityMs: 1000 }),
          sampleRow('arrival-taken-back', {
            ...others,
            inputTokens: -1,
            correction: { of: 'arrival-1', reason: 'Twice.', creditNote: '' },
          }),
        )
        const asked = { lane: 'lane/a', from: at, to: at + 27, limit: 2, offset: 0 }
        const first = await other.arrivals(asked)
        const second = await other.arrivals({ ...asked, offset: 2 })
        assert.deepEqual(
          [...first, ...second],
          [0, 1, 2].map((index) => ({
            arrivedAt: at + index * 9,
            inputTokens: index,
            maxTokens: 10,
            outputTokens: index * 2,
            durationMs: 40,
            firstTokenMs: index === 0 ? null : 5,
          })),
        )
        const newest = await other.newestArrivals({ ...asked, limit: 2 })
        assert.deepEqual(
          newest.map(({ inputTokens }) => inputTokens),
          [2, 1],
        )
        assert.deepEqual([first.length, second.length], [2, 1])
      })
    })

    describe('concurrent access', () => {
      it('reads continue while another process writes', async () => {
        const workspaceId = await newWorkspace()
        await settle(store, sampleRow('before', { workspaceId }))
        const release = await database.holdWriter()
        try {
          const asked = { workspaceId, ...always, groupBy: 'day' as const }
          await Promise.all([
            store.workspaces(),
            store.priceVersions(),
            store.keys({ limit: 1 }),
            store.keysByHash(['none']),
            store.usage({ workspaceId, ...always, limit: 1 }),
            store.usageRow('before'),
            store.usageSums({ ...asked, limit: 1 }),
            store.usageTotal(asked),
            store.pricedSums(workspaceId, 0, DAY_MS, ''),
            store.wrongSums(workspaceId),
            store.invoices(),
            store.lastSequence('tax_invoice'),
            store.sellers(),
            store.reversible(workspaceId, october, ofMonth(null, '')),
            store.credits(workspaceId, 0, DAY_MS),
            store.linkSecret(),
            store.arrivals({ lane: 'lane/a', from: 0, to: 1, limit: 1, offset: 0 }),
          ])
          // Neither does opening a store that is up to date wait for a writer.
          await (await database.open()).workspaces()
        } finally {
          await release()
        }
      })

      it('writes continue during a long read', async () => {
        const workspaceId = await newWorkspace()
        const release = await database.holdReader()
        try {
          await settle(store, sampleRow('during', { workspaceId }))
          assert.equal((await other.usageRow('during'))?.requestId, 'during')
        } finally {
          await release()
        }
      })

      it('a write waits for another one, and then succeeds', async () => {
        const workspaceId = await newWorkspace()
        const release = await database.holdWriter()
        const written = settle(store, sampleRow('waiting', { workspaceId }))
        assert.equal(await other.usageRow('waiting'), undefined)
        await release()
        await written
        assert.equal((await other.usageRow('waiting'))?.requestId, 'waiting')
      })
    })

    describe('reports', () => {
      const failed = { outcome: 'engine_failed', httpStatus: 502, errorCode: 'upstream_error' } as const
      /** Six rows, an hour apart, of two models and two keys. The third has failed. */
      async function reported(): Promise<{ workspaceId: string; rows: readonly LedgerRow[] }> {
        const workspaceId = await newWorkspace()
        const rows = Array.from({ length: 6 }, (_, index) =>
          sampleRow(`${workspaceId} ${index}`, {
            workspaceId,
            model: index % 2 ? 'meta/b' : 'meta/A',
            keyId: index < 4 ? 'key_1' : 'key_2',
            settledAt: october.from + index * HOUR_MS,
            amount: BigInt(index) * 1_000_000n,
            ...(index === 2 ? failed : {}),
          }),
        )
        await settle(store, ...rows)
        return { workspaceId, rows }
      }

      it('have the newest requests first, in pages, by model, key, outcome, status and error code', async () => {
        const { workspaceId, rows } = await reported()
        const asked = { workspaceId, from: october.from, to: october.to, limit: 4 }
        const idsOf = ({ rows: found }: { rows: readonly LedgerRow[] }) => found.map(({ requestId }) => requestId)
        const ids = rows.map(({ requestId }) => requestId).toReversed()
        const first = await other.recentRequests(asked)
        assert.deepEqual(idsOf(first), ids.slice(0, 4))
        const second = await other.recentRequests({ ...asked, before: first.next })
        assert.deepEqual([idsOf(second), second.next], [ids.slice(4), undefined])
        const by = async (filter: object) => idsOf(await other.recentRequests({ ...asked, ...filter }))
        assert.deepEqual(await by({ model: 'meta/b' }), [ids[0], ids[2], ids[4]])
        assert.deepEqual(await by({ keyId: 'key_2' }), ids.slice(0, 2))
        assert.deepEqual(await by({ outcome: 'failed' }), [ids[3]])
        assert.deepEqual(await by({ outcome: 'failed', keyId: 'key_2' }), [])
        assert.deepEqual(await by({ outcome: 'engine_failed' }), [ids[3]])
        assert.deepEqual(await by({ outcome: 'caller_left' }), [])
        assert.deepEqual(await by({ outcome: 'completed' }), [...ids.slice(0, 3), ids[4]])
        assert.deepEqual(await by({ outcome: 'completed', httpStatus: 502 }), [])
        assert.deepEqual(await by({ httpStatus: 502 }), [ids[3]])
        assert.deepEqual(await by({ httpStatus: 502, model: 'meta/b' }), [])
        assert.deepEqual(await by({ httpStatus: 200, keyId: 'key_1' }), [ids[2], ids[4], ids[5]])
        assert.deepEqual(await by({ errorCode: 'upstream_error' }), [ids[3]])
        assert.deepEqual(await by({ errorCode: 'upstream_timeout' }), [])
        // A broken stream had begun with 200.
        const broken = { ...failed, outcome: 'engine_broke', httpStatus: 200, settledAt: october.from } as const
        await settle(store, sampleRow(`${workspaceId} broken`, { workspaceId, keyId: 'key_1', ...broken }))
        assert.deepEqual((await by({ httpStatus: 200, limit: 9 })).length, 6)
        assert.deepEqual((await by({ errorCode: 'upstream_error' })).length, 2)
        // Of all workspaces.
        await reported()
        const everywhere = async (filter: object): Promise<readonly string[]> => {
          const found = await by({ workspaceId: undefined, to: october.from + 3 * HOUR_MS, limit: 4000, ...filter })
          assert.ok(
            found.length === 0 || found.some((id) => !id.startsWith(workspaceId)),
            'also those of other workspaces',
          )
          return found.filter((id) => id.startsWith(workspaceId))
        }
        assert.deepEqual(await everywhere({}), [ids[3], ids[4], `${workspaceId} broken`, ids[5]])
        assert.deepEqual(await everywhere({ outcome: 'completed' }), ids.slice(4))
        assert.deepEqual(await everywhere({ outcome: 'failed' }), [ids[3], `${workspaceId} broken`])
        assert.deepEqual(await everywhere({ httpStatus: 502 }), [ids[3]])
        assert.deepEqual(await everywhere({ errorCode: 'upstream_error' }), [ids[3], `${workspaceId} broken`])
        assert.deepEqual(await everywhere({ errorCode: 'upstream_error', httpStatus: 200 }), [`${workspaceId} broken`])
        assert.deepEqual(await everywhere({ errorCode: 'upstream_timeout' }), [])
        assert.deepEqual(await everywhere({ model: 'meta/b' }), [ids[4]])
        assert.deepEqual(await everywhere({ model: 'meta/b', outcome: 'failed' }), [])
        assert.deepEqual(await everywhere({ from: october.from + 1, to: october.from + 2 * HOUR_MS }), [ids[4]])
        assert.deepEqual(await by({ from: october.from + 5 * HOUR_MS }), [ids[0]])
      })

      it('have sums over time, and the groups that cost most', async () => {
        const { workspaceId } = await reported()
        const asked = { workspaceId, from: october.from, to: october.to, groupBy: 'model' as const }
        const hours = await other.usageOverTime({ ...asked, unit: 'hour' })
        assert.deepEqual(
          hours.map(({ at, rows, amount }) => [(at - october.from) / HOUR_MS, rows, amount]),
          Array.from({ length: 6 }, (_, index) => [index, 1, BigInt(index) * 1_000_000n]),
        )
        const [day, ...more] = await other.usageOverTime({ ...asked, unit: 'day' })
        assert.deepEqual([day?.at, day?.requests, day?.amount, more], [october.from, 6, 15_000_000n, []])
        assert.deepEqual(await other.largestGroups({ ...asked, limit: 5 }), ['meta/b', 'meta/A'])
        assert.deepEqual(await other.largestGroups({ ...asked, groupBy: 'key', limit: 1 }), ['key_2'])
      })

      it('cover one model or one key alone, on request', async () => {
        const { workspaceId } = await reported()
        const asked = {
          workspaceId,
          from: october.from,
          to: october.to,
          groupBy: 'key' as const,
          unit: 'hour' as const,
        }
        const hours = async (filter: object) =>
          (await other.usageOverTime({ ...asked, ...filter })).map(({ at }) => (at - october.from) / HOUR_MS)
        assert.deepEqual(await hours({ model: 'meta/b' }), [1, 3, 5])
        assert.deepEqual(await hours({ model: 'meta/b', keyId: 'key_1' }), [1, 3])
        assert.deepEqual(await hours({ model: 'none' }), [])
        assert.deepEqual(await other.largestGroups({ ...asked, model: 'meta/b', limit: 5 }), ['key_2', 'key_1'])
        const series = await other.groupsOverTime({ ...asked, groups: ['key_1', 'key_2'], model: 'meta/A' })
        assert.deepEqual(
          series.map(({ group, amount }) => [group, amount]),
          [
            ['key_1', 0n],
            ['key_1', 2_000_000n],
            ['key_2', 4_000_000n],
          ],
        )
      })

      it('have a sample from the whole period: the newest requests of each span', async () => {
        const { workspaceId } = await reported()
        // Neither reserved capacity nor the requests of others are in it.
        await settle(
          store,
          sampleRow(`${workspaceId} capacity`, {
            workspaceId,
            settledAt: october.from + 5.5 * HOUR_MS,
            capacityMs: HOUR_MS,
          }),
          sampleRow('of another workspace', { workspaceId: await newWorkspace(), settledAt: october.from + HOUR_MS }),
        )
        const span = (from: number, to: number) => ({
          from: october.from + from * HOUR_MS,
          to: october.from + to * HOUR_MS,
        })
        const asked = { workspaceId, spans: [span(0, 3), span(3, 6), span(6, 9)], rowsOfEach: 2 }
        const hours = async (more: object) =>
          (await other.sampledRequests({ ...asked, ...more })).map(
            ({ settledAt }) => (settledAt - october.from) / HOUR_MS,
          )
        assert.deepEqual(await hours({}), [2, 1, 5], 'the capacity was looked at')
        assert.deepEqual(await hours({ rowsOfEach: 10 }), [2, 1, 0, 5, 4, 3])
        assert.deepEqual(await hours({ model: 'meta/b' }), [1, 5])
        assert.deepEqual(await hours({ rowsOfEach: 10, model: 'meta/b', keyId: 'key_1' }), [1, 3])
        assert.deepEqual(await hours({ spans: [] }), [])
        const [failed] = await other.sampledRequests({ ...asked, spans: [span(2, 3)] })
        assert.deepEqual(
          [failed?.model, failed?.keyId, failed?.outcome, typeof failed?.durationMs],
          ['meta/A', 'key_1', 'engine_failed', 'number'],
        )
      })

      const late = { ...failed, httpStatus: 504 } as const
      for (const [most, whose, ending, wanted, filter] of [
        [5000, 'all requests', { httpStatus: 202 }, { httpStatus: 200 }, { httpStatus: 200 }],
        [500, 'those that failed', late, failed, { httpStatus: 502 }],
        [500, 'those with a code', late, failed, { httpStatus: 502, errorCode: 'upstream_error' }],
      ] as const) {
        it(`read ${most} rows of ${whose} for a page, and return where to continue`, async () => {
          const workspaceId = await newWorkspace()
          const idOf = (index: number): string => `${workspaceId} ${String(index).padStart(5, '0')}`
          const rows = Array.from({ length: most + 2 }, (_, index) =>
            sampleRow(idOf(index), {
              workspaceId,
              // Several at a time: the id says in which order they are.
              settledAt: october.from + Math.floor(index / 3),
              ...([1, 2, most].includes(index) ? wanted : ending),
            }),
          )
          await settle(store, ...rows)
          const asked = { workspaceId, from: october.from, to: october.to, limit: 4, ...filter }
          const first = await other.recentRequests(asked)
          assert.deepEqual(
            first.rows.map(({ requestId }) => requestId),
            [idOf(most), idOf(2)],
          )
          assert.equal(first.next?.requestId, idOf(2))
          const second = await other.recentRequests({ ...asked, before: first.next })
          assert.deepEqual([second.rows.map(({ requestId }) => requestId), second.next], [[idOf(1)], undefined])
        })
      }
    })

    describe('the newest requests of one model or key', () => {
      let workspaceId: string
      let rows: readonly LedgerRow[]

      before(async () => {
        workspaceId = await newWorkspace()
        // A few rows every other hour; then two hours that a page cannot both look at, and one that is too much for a page.
        const few = Array.from({ length: 120 }, (_, index) => Math.floor(index / 2) * 2 * HOUR_MS)
        const crowd = (hour: number, size: number): number[] =>
          Array.from({ length: size }, (_, index) => hour * HOUR_MS + Math.floor(index / 3))
        rows = [...few, ...crowd(130, 2600), ...crowd(131, 2600), ...crowd(200, 5100)].map((settledAt, index) => {
          // Among many, those of an hour that were first.
          const isEarly = index < 120 || settledAt % HOUR_MS < 5
          return sampleRow(`${workspaceId} ${String(index).padStart(5, '0')}`, {
            workspaceId,
            settledAt: october.from + settledAt,
            model: isEarly && index % 5 === 0 ? 'meta/rare' : 'meta/common',
            keyId: isEarly && index % 7 === 0 ? 'key_rare' : 'key_common',
            outcome: index < 120 && index % 10 === 0 ? 'engine_failed' : 'completed',
          })
        })
        await settle(store, ...rows)
      })

      const filters: readonly (UsageFilter & { outcome?: 'failed'; from?: number; to?: number })[] = [
        { model: 'meta/rare' },
        { keyId: 'key_rare' },
        { model: 'meta/rare', keyId: 'key_rare' },
        { model: 'meta/rare', outcome: 'failed' },
        { keyId: 'key_rare', from: october.from + 3.5 * HOUR_MS, to: october.from + 118 * HOUR_MS },
        { model: 'meta/none' },
      ]
      for (const filter of filters) {
        it(`are found in pages: ${JSON.stringify(filter)}`, async () => {
          const expected = rows
            .filter((row) => fits(row, filter) && !(filter.outcome && row.outcome === 'completed'))
            .filter(({ settledAt }) => settledAt >= (filter.from ?? 0) && settledAt < (filter.to ?? october.to))
            .map(({ requestId }) => requestId)
            .toReversed()
          for (const limit of [1, 2, 7, 200]) {
            const found: string[] = []
            let before: RowPlace | undefined
            let pages = 0
            do {
              const page = await other.recentRequests({ workspaceId, ...october, ...filter, limit, before })
              found.push(...page.rows.map(({ requestId }) => requestId))
              before = page.next
            } while (before && ++pages < 100)
            assert.deepEqual(found, expected, `${limit} at a time`)
          }
        })
      }

      it('are found at once in hours that are far apart', async () => {
        const asked = { workspaceId, ...october, to: october.from + 130 * HOUR_MS, limit: 10, model: 'meta/rare' }
        assert.equal((await other.recentRequests(asked)).rows.length, 10)
      })
    })

    describe('the audit log', () => {
      it('has the newest entries first, and accepts only the first end of each', async () => {
        const entry = { at: 1, actor: 'token', action: 'x', subject: 'ä "s"', request: '{}', before: null }
        const first = await store.beginAudit({ ...entry, requestId: 'r1' })
        const second = await other.beginAudit({ ...entry, requestId: 'r2' })
        await other.endAudit(first, 'done', '{"a":1}')
        await store.endAudit(first, 'refused', null)
        const begun = { ...entry, id: second, requestId: 'r2', after: null, outcome: 'begun' }
        const done = { ...entry, id: first, requestId: 'r1', after: '{"a":1}', outcome: 'done' }
        assert.deepEqual(await store.auditLog({ limit: 2 }), [begun, done])
        assert.deepEqual(await store.auditLog({ before: second, limit: 1 }), [done])
      })
    })

    it('keeps the first secret of links, until it is replaced', async () => {
      await store.addLinkSecret('one')
      await other.addLinkSecret('two')
      assert.equal(await store.linkSecret(), 'one')
      await other.replaceLinkSecret('three')
      assert.equal(await store.linkSecret(), 'three')
    })

    it('keeps the checkpoint of a journal until it is deleted', async () => {
      const owner = await database.open('forgotten')
      await owner.addRows([], { segment: 3, offset: 4 })
      assert.deepEqual(await owner.journalPosition(), { segment: 3, offset: 4 })
      await owner.forgetJournal()
      assert.equal(await owner.journalPosition(), undefined)
    })

    it('keeps everything when it is closed and opened again, and refuses work after closing', async () => {
      const workspaceId = await newWorkspace()
      const row = sampleRow('kept', { workspaceId })
      const first = await database.open()
      await settle(first, row)
      await first.close()
      await assert.rejects(first.usageRow('kept'), /closed/)
      assert.deepEqual(await (await database.open()).usageRow('kept'), row)
    })
  })
}
