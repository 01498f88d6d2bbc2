import { completeDocument, type StoredDocument } from '../invoice-document.ts'
import { CREDIT } from '../../../ledger/rows.ts'
import type { InvoiceStore, IssuedInvoice, LinkSecretStore } from '../invoice-store.ts'
import {
  commandForEach,
  query,
  readRows,
  writeOne,
  type Database,
  type Row,
  type Statement,
  type Values,
} from '../../../store/database.ts'
import { placeholders, ROW_COLUMNS, rowValues, toLedgerRow } from '../../../ledger/queries/ledger-rows.ts'
import { addingRows } from '../../../ledger/queries/usage-sums.ts'
import { addEvent } from '../../../alerts/queries/alerts.ts'
import { alertEvent } from '../../../alerts/events.ts'
import { addEmail } from './emails.ts'
import { addAmounts, NUMBERS_IN_STATE } from './payments.ts'

export const INVOICE_COLUMNS = [
  'number',
  'kind',
  'sequence',
  'seller_abn',
  'workspace_id',
  'period',
  'period_from',
  'period_to',
  'issued_at',
  'document',
  'replaces',
] as const

/**
 * A document may take its number: it is the next, no unfinished document has it, this ledger belongs to the seller, and
 * the month has the rows that the document was computed from.
 */
export const IS_NEXT = `? = (SELECT coalesce(max(sequence), 0) + 1 FROM invoices WHERE kind = ?)
  AND NOT EXISTS (SELECT 1 FROM invoices WHERE seller_abn <> ?)
  AND ? = (SELECT coalesce(sum(row_count), 0) FROM usage_days
    WHERE workspace_id = ? AND day >= ? AND day < ? AND credit_note = '')
  AND NOT EXISTS (SELECT 1 FROM unfinished_notes WHERE kind = ?)`

const ISSUE = `INSERT INTO invoices (${INVOICE_COLUMNS.join(', ')}) SELECT ${placeholders(INVOICE_COLUMNS)}
  WHERE ${IS_NEXT} ON CONFLICT DO NOTHING RETURNING number`

/** True in the transaction that issued the invoice, and only if it was issued. */
const IF_ISSUED = 'EXISTS (SELECT 1 FROM invoices WHERE number = ? AND workspace_id = ? AND issued_at = ?)'

/** The event of a document, if it was issued in this transaction. */
export function addIssued({ number, kind, workspaceId, period, issuedAt, document }: IssuedInvoice): Statement {
  const data = { number, kind, period, total: document.total, due: document.due }
  const event = alertEvent('invoice.issued', { unique: [number], at: issuedAt, data })
  return addEvent(
    event,
    'invoices WHERE number = ? AND workspace_id = ? AND issued_at = ?',
    number,
    workspaceId,
    issuedAt,
  )
}

const ADD_ROW = `INSERT INTO ledger (${ROW_COLUMNS.join(', ')}) SELECT ${placeholders(ROW_COLUMNS)} WHERE ${IF_ISSUED}`

/** Only while the month of the corrected row is open, so that the rows of a closed month do not change. */
const CORRECT = `INSERT INTO ledger (${ROW_COLUMNS.join(', ')}) SELECT ${placeholders(ROW_COLUMNS)}
  WHERE NOT EXISTS (SELECT 1 FROM invoices WHERE kind = 'tax_invoice' AND workspace_id = ?
    AND period_from <= ? AND period_to > ?)
  ON CONFLICT DO NOTHING RETURNING request_id`

const IS_CREDIT_OF = `workspace_id = ? AND endpoint = '${CREDIT}' AND settled_at >= ? AND settled_at < ? AND credit_note = ''`
const CREDITS = `SELECT ${ROW_COLUMNS.join(', ')} FROM ledger WHERE ${IS_CREDIT_OF}`

/** Only while its month is open, and if no other process has added a credit in the meantime. */
const ADD_CREDIT = `INSERT INTO ledger (${ROW_COLUMNS.join(', ')}) SELECT ${placeholders(ROW_COLUMNS)}
  WHERE NOT EXISTS (SELECT 1 FROM invoices WHERE kind = 'tax_invoice' AND workspace_id = ?
    AND period_from <= ? AND period_to > ?)
  AND ? = (SELECT count(*) FROM ledger WHERE ${IS_CREDIT_OF})
  RETURNING request_id`

/** One lookup for each workspace, instead of reading the sums of all of them. */
const NOT_INVOICED = `SELECT id, CASE WHEN EXISTS (SELECT 1 FROM usage_days
    WHERE workspace_id = workspaces.id AND day >= ? AND day < ? AND credit_note = '') THEN 1 ELSE 0 END AS has_rows
  FROM workspaces WHERE NOT EXISTS (SELECT 1 FROM invoices
    WHERE workspace_id = workspaces.id AND period = ? AND kind = 'tax_invoice')`

export function invoiceQueries(database: Database): InvoiceStore {
  return {
    async invoices({ workspaceId, number } = {}) {
      const conditions = [
        ...(workspaceId === undefined ? [] : ['workspace_id = ?']),
        ...(number === undefined ? [] : ['number = ?']),
      ]
      const rows = await readRows(
        database,
        `SELECT ${INVOICE_COLUMNS.join(', ')} FROM invoices ${conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`}
         ORDER BY issued_at, kind, sequence`,
        ...[workspaceId, number].filter((it) => it !== undefined),
      )
      return rows.map(toInvoice)
    },
    async notInvoiced({ name, from, to }) {
      const rows = await readRows(database, NOT_INVOICED, from, to, name)
      return rows.map((row) => ({ workspaceId: String(row['id']), hasRows: Number(row['has_rows']) === 1 }))
    },
    async newestInvoices({ workspaceId, before, state, limit }) {
      const conditions = [
        ...(workspaceId === undefined ? [] : ['workspace_id = ?']),
        ...(before === undefined ? [] : ['(issued_at, number) < (?, ?)']),
        ...(state === undefined ? [] : [`number IN (${NUMBERS_IN_STATE})`]),
      ]
      const rows = await readRows(
        database,
        `SELECT ${INVOICE_COLUMNS.join(', ')} FROM invoices ${conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`}
         ORDER BY issued_at DESC, number DESC LIMIT ?`,
        ...(workspaceId === undefined ? [] : [workspaceId]),
        ...(before === undefined ? [] : [before.issuedAt, before.number]),
        ...(state === undefined ? [] : [state.today, state.is]),
        limit,
      )
      return rows.map(toInvoice)
    },
    async issueInvoice(invoice, rowsExpected, own, { isMailed } = { isMailed: false }) {
      const ifIssued = [invoice.number, invoice.workspaceId, invoice.issuedAt]
      const issuing = query(ISSUE, ...documentValues(invoice), ...isNextValues(invoice, rowsExpected))
      const rows = commandForEach(
        ADD_ROW,
        own.map((row) => [...rowValues(row), ...ifIssued]),
      )
      const email = isMailed ? [addEmail(invoice)] : []
      const [issued] = await database.transact(
        addingRows([issuing, addAmounts(invoice), addIssued(invoice), ...email, rows], ['invoices']),
      )
      return issued?.length === 1
    },
    async credits(workspaceId, from, to) {
      return (await readRows(database, CREDITS, workspaceId, from, to)).map(toLedgerRow)
    },
    async addCredit(credit, { from, to }, expected) {
      const { workspaceId, settledAt } = credit
      const isOpen = [workspaceId, settledAt, settledAt]
      const values = [...rowValues(credit), ...isOpen, expected, workspaceId, from, to]
      const [added] = await database.transact(addingRows([query(ADD_CREDIT, ...values)]))
      return added?.length === 1
    },
    async lastSequence(kind) {
      const [row] = await readRows(
        database,
        'SELECT coalesce(max(sequence), 0) AS last FROM invoices WHERE kind = ?',
        kind,
      )
      return Number(row?.['last'])
    },
    async sellers() {
      const rows = await readRows(database, 'SELECT DISTINCT seller_abn FROM invoices')
      return rows.map((row) => String(row['seller_abn']))
    },
    async correctRow(reversal) {
      const { workspaceId, settledAt } = reversal
      const [added] = await database.transact(
        addingRows([query(CORRECT, ...rowValues(reversal), workspaceId, settledAt, settledAt)]),
      )
      return added?.length === 1
    },
  }
}

/** In the order of INVOICE_COLUMNS. */
export function documentValues(it: IssuedInvoice): Values {
  return [
    it.number,
    it.kind,
    it.sequence,
    it.sellerAbn,
    it.workspaceId,
    it.period,
    it.periodFrom,
    it.periodTo,
    it.issuedAt,
    JSON.stringify(it.document),
    it.document.replaces,
  ]
}

/** The values of IS_NEXT. */
export function isNextValues(it: IssuedInvoice, rowsExpected: number): Values {
  return [it.sequence, it.kind, it.sellerAbn, rowsExpected, it.workspaceId, it.periodFrom, it.periodTo, it.kind]
}

export function toInvoice(row: Row): IssuedInvoice {
  return {
    number: String(row['number']),
    kind: String(row['kind']) as IssuedInvoice['kind'],
    sequence: Number(row['sequence']),
    sellerAbn: String(row['seller_abn']),
    workspaceId: String(row['workspace_id']),
    period: String(row['period']),
    periodFrom: Number(row['period_from']),
    periodTo: Number(row['period_to']),
    issuedAt: Number(row['issued_at']),
    document: completeDocument(JSON.parse(String(row['document'])) as StoredDocument),
  }
}

export function linkSecretQueries(database: Database): LinkSecretStore {
  return {
    async linkSecret() {
      const [row] = await readRows(database, 'SELECT secret FROM link_secret')
      return row && String(row['secret'])
    },
    addLinkSecret: (secret) =>
      writeOne(database, 'INSERT INTO link_secret (slot, secret) VALUES (1, ?) ON CONFLICT DO NOTHING', secret),
    replaceLinkSecret: (secret) =>
      writeOne(
        database,
        'INSERT INTO link_secret (slot, secret) VALUES (1, ?) ON CONFLICT (slot) DO UPDATE SET secret = excluded.secret',
        secret,
      ),
  }
}
