import type { InvoiceDocument } from '../../core/money/invoice-document.ts'
import { sydneyDay } from '../../core/money/sydney-time.ts'
import type { InvoiceStore, IssuedInvoice, Reversal } from '../../ports/invoices.ts'
import { command, commandForEach, query, readRows, type Database, type Row, type Values } from '../database.ts'
import type { SqlDialect } from '../fragments.ts'
import { placeholders, ROW_COLUMNS, rowValues } from './ledger-rows.ts'
import { addingRows } from './usage-sums.ts'
import { rowsAsSums, sumColumns, toPricedSums } from './usage.ts'

const COLUMNS = [
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
] as const

/** Only if it is the next in line, these are the seller's books, and the month has the rows it was computed from. */
const ISSUE = `INSERT INTO invoices (${COLUMNS.join(', ')}) SELECT ${placeholders(COLUMNS)}
  WHERE ? = (SELECT coalesce(max(sequence), 0) + 1 FROM invoices WHERE kind = ?)
  AND NOT EXISTS (SELECT 1 FROM invoices WHERE seller_abn <> ?)
  AND ? = (SELECT coalesce(sum(row_count), 0) FROM usage_days
    WHERE workspace_id = ? AND day >= ? AND day < ? AND credit_note = '')
  ON CONFLICT DO NOTHING RETURNING number`

/** Holds in the transaction that issued the invoice, and only if it was issued. */
const IF_ISSUED = 'EXISTS (SELECT 1 FROM invoices WHERE number = ? AND workspace_id = ? AND issued_at = ?)'

const ADD_ROW = `INSERT INTO ledger (${ROW_COLUMNS.join(', ')}) SELECT ${placeholders(ROW_COLUMNS)} WHERE ${IF_ISSUED}`

export function invoiceQueries(database: Database): InvoiceStore {
  const { dialect } = database

  /** Issues a document and, only if that succeeds, adds its rows to the ledger. */
  async function issue(document: IssuedInvoice, rowsExpected: number, rows: ReturnType<typeof command>) {
    const issuing = query(ISSUE, ...issueValues(document, rowsExpected))
    const [issued] = await database.transact(addingRows([issuing, rows], ['invoices']))
    return issued?.length === 1
  }

  return {
    async invoices({ workspaceId, number } = {}) {
      const conditions = [
        ...(workspaceId === undefined ? [] : ['workspace_id = ?']),
        ...(number === undefined ? [] : ['number = ?']),
      ]
      const rows = await readRows(
        database,
        `SELECT ${COLUMNS.join(', ')} FROM invoices ${conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`}
         ORDER BY issued_at, kind, sequence`,
        ...[workspaceId, number].filter((it) => it !== undefined),
      )
      return rows.map(toInvoice)
    },
    issueInvoice(invoice, rowsExpected, capacity) {
      const ifIssued = [invoice.number, invoice.workspaceId, invoice.issuedAt]
      const rows = capacity.map((row) => [...rowValues(row), ...ifIssued])
      return issue(invoice, rowsExpected, commandForEach(ADD_ROW, rows))
    },
    issueNote: (note, rowsExpected, reversal) =>
      issue(note, rowsExpected, command(reverse(dialect, reversal.requestIds), ...reverseValues(note, reversal))),
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
    async reversibleSums(workspaceId, from, to, requestIds) {
      const source = rowsAsSums(['model', 'price_version'], reversible(dialect, requestIds), 'reversible')
      const rows = await readRows(
        database,
        `SELECT model, price_version, ${sumColumns(dialect)} FROM ${source}
         GROUP BY model, price_version ORDER BY model, price_version`,
        workspaceId,
        from,
        to,
        ...idValues(requestIds),
      )
      return rows.map(toPricedSums)
    },
  }
}

/** The rows of a closed month, or some of them, that no note has taken back yet. */
function reversible({ selectTexts }: SqlDialect, requestIds: readonly string[] | null): string {
  const isAsked = requestIds === null ? '' : `AND request_id IN (${selectTexts('?')})`
  return `workspace_id = ? AND settled_at >= ? AND settled_at < ? AND credit_note = '' ${isAsked}
    AND NOT EXISTS (SELECT 1 FROM ledger AS later WHERE later.corrects = ledger.request_id)`
}

const idValues = (requestIds: readonly string[] | null): Values =>
  requestIds === null ? [] : [JSON.stringify(requestIds)]

/** Adds the opposite of each such row. */
function reverse(dialect: SqlDialect, requestIds: readonly string[] | null): string {
  return `INSERT INTO ledger (${ROW_COLUMNS.join(', ')})
    SELECT ? || ':' || request_id, workspace_id, key_id, model, lane, endpoint, price_version, max_tokens, ?,
      -input_tokens, -cached_input_tokens, -output_tokens, -images, -audio_ms, estimated, outcome, -amount_pico_aud,
      0, NULL, 0, -capacity_ms, request_id, ?, ?, ?, ?
    FROM ledger WHERE ${reversible(dialect, requestIds)} AND ${IF_ISSUED}`
}

function reverseValues(note: IssuedInvoice, { requestIds, reason }: Reversal): Values {
  return [
    note.number,
    note.issuedAt,
    note.number,
    reason,
    note.issuedAt,
    sydneyDay(note.issuedAt),
    note.workspaceId,
    note.periodFrom,
    note.periodTo,
    ...idValues(requestIds),
    note.number,
    note.workspaceId,
    note.issuedAt,
  ]
}

function issueValues(it: IssuedInvoice, rowsExpected: number): Values {
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
    it.sequence,
    it.kind,
    it.sellerAbn,
    rowsExpected,
    it.workspaceId,
    it.periodFrom,
    it.periodTo,
  ]
}

function toInvoice(row: Row): IssuedInvoice {
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
    document: JSON.parse(String(row['document'])) as InvoiceDocument,
  }
}
