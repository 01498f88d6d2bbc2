import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { paymentQueries } from '../../src/billing/invoices/queries/payments.ts'
import type { IssuedInvoice, UnfinishedNote } from '../../src/billing/invoices/invoice-store.ts'
import type { Database, Lock, Transaction } from '../../src/store/database.ts'
import { sqliteDialect } from '../../src/store/fragments.ts'
import { accountQueries } from '../../src/workspaces/account-queries.ts'
import { adjustmentNoteQueries } from '../../src/billing/invoices/queries/adjustment-notes.ts'
import { arrivalQueries } from '../../src/billing/usage/queries/arrivals.ts'
import { alertQueries } from '../../src/alerts/queries/alerts.ts'
import { alertEvent } from '../../src/alerts/events.ts'
import { emailQueries } from '../../src/billing/invoices/queries/emails.ts'
import { invoiceQueries, linkSecretQueries } from '../../src/billing/invoices/queries/invoices.ts'
import { keyQueries } from '../../src/workspaces/keys/key-queries.ts'
import { ledgerQueries } from '../../src/ledger/queries/ledger.ts'
import { addUpRows } from '../../src/ledger/queries/usage-sums.ts'
import { sessionQueries } from '../../src/workspaces/sessions/session-queries.ts'
import { usageQueries } from '../../src/billing/usage/queries/usage.ts'
import { sampleRow } from '../support/ledger-samples.ts'
import { noLimits } from '../support/key-limits.ts'

/** What SQLite cannot show, having one writer at a time: what each transaction says that it reads, writes and locks. */

const transactions: Transaction[] = []
const database: Database = {
  dialect: sqliteDialect,
  transact(transaction) {
    transactions.push(transaction)
    return Promise.resolve(transaction.statements.map(() => []))
  },
  close: () => Promise.resolve(),
}
const store = {
  ...accountQueries(database),
  ...keyQueries(database),
  ...ledgerQueries(database, 'owner'),
  ...usageQueries(database),
  ...sessionQueries(database),
  ...invoiceQueries(database),
  ...paymentQueries(database),
  ...adjustmentNoteQueries(database),
  ...linkSecretQueries(database),
  ...emailQueries(database),
  ...alertQueries(database),
  ...arrivalQueries(database),
}

const workspaceId = 'ws_1'
const period = { from: 0, to: 3_600_000 }
const asked = { workspaceId, ...period, groupBy: 'model' as const }
const row = sampleRow('a')
const document = { total: '0.00', lines_total: '0' }
const invoice = { workspaceId, document, issuedAt: 1 } as IssuedInvoice
const payment = { number: 'INV-1', amount: 1n, paidOn: '2026-11-18', reference: 'a', recordedAt: 0 }
const unfinished: UnfinishedNote = {
  note: invoice,
  reversal: { rowsOf: [''], creditsOf: [], from: 0, to: 1, requestIds: ['a'], reason: 'It was wrong.' },
  after: { settledAt: 0, requestId: '' },
}

const reads: Readonly<Record<string, () => Promise<unknown>>> = {
  workspaces: () => store.workspaces(),
  priceVersions: () => store.priceVersions(),
  key: () => store.key('a'),
  keys: () => store.keys({ limit: 1 }),
  keysByHash: () => store.keysByHash(['a']),
  lastKeyChange: () => store.lastKeyChange(),
  keyChanges: () => store.keyChanges(0, 1),
  usage: () => store.usage({ workspaceId, ...period, limit: 1 }),
  usageRow: () => store.usageRow('a'),
  usageRows: () => store.usageRows(['a']),
  usageSums: () => store.usageSums({ ...asked, limit: 1 }),
  usageTotal: () => store.usageTotal(asked),
  pricedSums: () => store.pricedSums(workspaceId, 0, 1, ''),
  wrongSums: () => store.wrongSums(workspaceId),
  earlierIntents: () => store.earlierIntents(),
  journalPosition: () => store.journalPosition(),
  refusedRows: () => store.refusedRows(1),
  invoices: () => store.invoices(),
  newestInvoices: () => store.newestInvoices({ workspaceId, before: undefined, limit: 1 }),
  notInvoiced: () => store.notInvoiced({ name: '2026-11', ...period }),
  receivables: () => store.receivables(['INV-1'], '2026-11-18'),
  payments: () => store.payments(['INV-1']),
  lastSequence: () => store.lastSequence('tax_invoice'),
  sellers: () => store.sellers(),
  lastSettledAt: () => store.lastSettledAt(),
  unfinishedNote: () => store.unfinishedNote(),
  reversible: () => store.reversible(workspaceId, period, unfinished.reversal),
  credits: () => store.credits(workspaceId, 0, 1),
  linkSecret: () => store.linkSecret(),
  emails: () => store.emails(['a']),
  expiringKeys: () => store.expiringKeys({ now: 1, before: 2, after: undefined, limit: 1 }),
  keysWithSpendLimit: () => store.keysWithSpendLimit({ now: 1, after: undefined, limit: 1 }),
  eventsToDispatch: () => store.eventsToDispatch(1),
  deliveries: () => store.deliveries({ limit: 1 }),
  delivery: () => store.delivery('a'),
  disabledEndpoints: () => store.disabledEndpoints(),
  oldestUndelivered: () => store.oldestUndelivered(['a']),
  keysLastUsed: () => store.keysLastUsed(['a']),
  sessionsByHash: () => store.sessionsByHash(['a']),
  sessions: () => store.sessions({ now: 1, limit: 1 }),
  arrivals: () => store.arrivals({ lane: 'a', ...period, limit: 1, offset: 0 }),
  newestArrivals: () => store.newestArrivals({ lane: 'a', ...period, limit: 1 }),
}

const key = {
  id: 'a',
  workspaceId,
  hash: 'a',
  ending: null,
  name: null,
  createdAt: 1,
  expiresAt: null,
  revokedAt: null,
  ...noLimits,
}

const event = alertEvent('download.finished', { unique: ['a'], at: 1, data: { model: 'a' } })

const writes: Readonly<Record<string, readonly [readonly Lock[], () => Promise<unknown>]>> = {
  createWorkspace: [[], () => store.createWorkspace({ id: 'a', name: 'a', requestsPerMinute: 1, createdAt: 1 })],
  setRequestsPerMinute: [[], () => store.setRequestsPerMinute(workspaceId, 1)],
  setTokensPerMinute: [[], () => store.setTokensPerMinute(workspaceId, 1)],
  setSpendLimit: [[], () => store.setSpendLimit(workspaceId, null)],
  setBuyer: [
    [],
    () => store.setBuyer(workspaceId, { name: null, abn: null, address: null, purchaseOrder: null, email: null }),
  ],
  createKey: [['keys'], () => store.createKey(key)],
  changeKey: [['keys'], () => store.changeKey('a', { name: 'b' })],
  revokeKey: [['keys'], () => store.revokeKey('a', 1)],
  addSession: [
    [],
    () =>
      store.addSession(
        {
          kind: 'session',
          hash: 'a',
          owner: 'a',
          keyHash: null,
          name: 'a',
          startedAt: 1,
          usedAt: 1,
          expiresAt: 2,
          address: null,
          person: null,
          roles: [],
        },
        { ofOwner: 1, ofAll: 1 },
        1,
      ),
  ],
  removeSession: [[], () => store.removeSession('a')],
  moveSession: [[], () => store.moveSession('a', 'b')],
  sessionUsed: [[], () => store.sessionUsed('a', 2)],
  takeLink: [[], () => store.takeLink('a')],
  addPriceVersions: [
    ['prices'],
    () => store.addPriceVersions([{ model: 'a', workspaceId: null, prices: null, effectiveFrom: 1, latest: 0 }]),
  ],
  addRows: [['usage_sums'], () => store.addRows([row], { segment: 1, offset: 2 })],
  setAside: [[], () => store.setAside(row, 'refused', 1)],
  addRefused: [['usage_sums'], () => store.addRefused([row])],
  forgetJournal: [[], () => store.forgetJournal()],
  forgetEarlierIntents: [[], () => store.forgetEarlierIntents()],
  issueInvoice: [['invoices', 'usage_sums'], () => store.issueInvoice(invoice, 1, [], { isMailed: true })],
  addCredit: [['usage_sums'], () => store.addCredit(row, period, 0)],
  addLinkSecret: [[], () => store.addLinkSecret('a')],
  replaceLinkSecret: [[], () => store.replaceLinkSecret('a')],
  correctRow: [['usage_sums'], () => store.correctRow(row)],
  beginNote: [['invoices'], () => store.beginNote(invoice, 1, unfinished.reversal)],
  continueNote: [['usage_sums'], () => store.continueNote(unfinished, 1)],
  finishNote: [['invoices'], () => store.finishNote(invoice, { isMailed: true })],
  addPayment: [['invoices'], () => store.addPayment(payment, 1n)],
  removePayment: [['invoices'], () => store.removePayment('INV-1', 1, 0)],
  addEvents: [[], () => store.addEvents([event])],
  addChange: [['alerts'], () => store.addChange(event, 'engine.up')],
  dispatchEvents: [[], () => store.dispatchEvents([{ id: 'a', body: 'b', endpoints: ['c'] }], 1)],
  leaseWatch: [[], () => store.leaseWatch('a', 1, 2)],
  claimDelivery: [[], () => store.claimDelivery({ name: 'a', url: 'b' }, 1, 2)],
  finishDelivery: [
    [],
    () =>
      store.finishDelivery(
        { id: 'a', eventId: 'b', body: 'c', attempts: 1, leaseUntil: 2 },
        { state: 'sent', nextAttemptAt: 1, sentAt: 1, lastError: null },
      ),
  ],
  replayDelivery: [[], () => store.replayDelivery('a', 1)],
  disableEndpoint: [[], () => store.disableEndpoint({ name: 'a', url: 'b' }, 1)],
  enableEndpoint: [[], () => store.enableEndpoint('a')],
  forgetEvents: [[], () => store.forgetEvents(1)],
  queueEmail: [[], () => store.queueEmail('INV-1', 'a@b', 1)],
  claimEmail: [[], () => store.claimEmail(1, 2)],
  finishEmail: [
    [],
    () =>
      store.finishEmail(
        { number: 'a', recipient: 'a@b', attempts: 1, leaseUntil: 2 },
        { state: 'sent', nextAttemptAt: 1, sentAt: 1, lastError: null },
      ),
  ],
}

async function transactionsOf(call: () => Promise<unknown>): Promise<readonly Transaction[]> {
  transactions.length = 0
  await call()
  return [...transactions]
}

describe('the transactions of the store', () => {
  for (const [name, call] of Object.entries(reads)) {
    it(`${name} only reads, and locks nothing`, async () => {
      const made = await transactionsOf(call)
      assert.ok(made.length > 0)
      for (const { access, statements } of made) {
        assert.equal(access, 'read')
        for (const { sql, returns } of statements) {
          assert.match(sql, /^SELECT/)
          assert.equal(returns, 'rows')
        }
      }
    })
  }

  for (const [name, [locks, call]] of Object.entries(writes)) {
    it(`${name} writes in one transaction that locks ${locks.join(' and ') || 'nothing'}`, async () => {
      const made = await transactionsOf(call)
      assert.deepEqual(
        made.map((it) => [it.access, it.access === 'write' && it.locks]),
        [['write', locks]],
      )
      const { statements } = made[0]!
      const addsRows = statements.some(({ sql }) => sql.startsWith('INSERT INTO ledger '))
      assert.equal(addsRows, locks.includes('usage_sums'))
      assert.deepEqual(addsRows ? statements.slice(-addUpRows.length) : [], addsRows ? addUpRows : [])
    })
  }

  it('rows of a model or key are read from the ledger alone, in the given hours', async () => {
    // With a join, PostgreSQL reads every row of a large ledger for a page.
    const hours = [0, 1, 5].map((hour) => ({ hour: BigInt(hour * 3_600_000), row_count: 1n }))
    const seen: Transaction[] = []
    const { usage } = usageQueries({
      ...database,
      transact(transaction) {
        seen.push(transaction)
        const isOfHours = transaction.statements[0]?.sql.includes('FROM usage_hours')
        return Promise.resolve(transaction.statements.map(() => (isOfHours ? hours : [])))
      },
    })
    await usage({ workspaceId, from: 1000, to: 10 * 3_600_000, limit: 9, model: 'a' })
    const statements = seen.at(-1)?.statements ?? []
    assert.deepEqual(
      statements.map(({ sql, runs }) => [/FROM ledger WHERE/.test(sql), runs[0]?.[2], runs[0]?.[1]]),
      [
        [true, 1000, 2 * 3_600_000],
        [true, 5 * 3_600_000, 6 * 3_600_000],
      ],
    )
  })

  it('are all checked here', () => {
    const seen = [...Object.keys(reads), ...Object.keys(writes).map((name) => name.split(' ', 1).join())]
    assert.deepEqual([...new Set(seen)].toSorted(), Object.keys(store).toSorted())
  })
})
