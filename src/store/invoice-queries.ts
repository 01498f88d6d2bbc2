import type { InvoiceDocument } from '../core/money/invoice-document.ts'
import { sydneyDay } from '../core/money/sydney-time.ts'
import type { InvoiceStore, IssuedInvoice, Reversal } from '../ports/invoices.ts'
import { ROW_COLUMNS, rowValues, type Row, type Values } from './ledger-rows.ts'
import type { Statement } from './sqlite-worker.ts'
import { rowsAsSums, SUMS, toPricedSums } from './usage-queries.ts'

const COLUMNS = 'number, kind, sequence, seller_abn, workspace_id, period, period_from, period_to, issued_at, document'

/** Only if it is the next in line, if the seller is the one these books are of, and if no row came meanwhile. */
const ISSUE = `INSERT INTO invoices (${COLUMNS}) SELECT ${COLUMNS.replaceAll(/\w+/g, '?')}
  WHERE ? = (SELECT coalesce(max(sequence), 0) + 1 FROM invoices WHERE kind = ?)
  AND NOT EXISTS (SELECT 1 FROM invoices WHERE seller_abn <> ?)
  AND ? = (SELECT coalesce(sum(row_count), 0) FROM usage_days
    WHERE workspace_id = ? AND day >= ? AND day < ? AND credit_note = '')
  ON CONFLICT DO NOTHING RETURNING number`

const IF_ISSUED = 'EXISTS (SELECT 1 FROM invoices WHERE number = ? AND workspace_id = ? AND issued_at = ?)'

const ADD_ROW = `INSERT INTO ledger (${ROW_COLUMNS}) SELECT ${ROW_COLUMNS.replaceAll(/\w+/g, '?')} WHERE ${IF_ISSUED}`

const NOT_TAKEN_BACK = `workspace_id = ? AND settled_at >= ? AND settled_at < ? AND credit_note = ''
  AND (? IS NULL OR request_id IN (SELECT value FROM json_each(?)))
  AND NOT EXISTS (SELECT 1 FROM ledger AS later WHERE later.corrects = ledger.request_id)`

/** The opposite of every row of a closed month, or of some, that has not been taken back yet. */
const REVERSE = `INSERT INTO ledger (${ROW_COLUMNS})
  SELECT ? || ':' || request_id, workspace_id, key_id, model, lane, endpoint, price_version, max_tokens, ?,
    -input_tokens, -cached_input_tokens, -output_tokens, -images, -audio_ms, estimated, outcome, -amount_pico_aud,
    0, NULL, 0, -capacity_ms, request_id, ?, ?, ?, ?
  FROM ledger WHERE ${NOT_TAKEN_BACK} AND ${IF_ISSUED}`

export function invoiceQueries(
  transact: (statements: readonly Statement[]) => Promise<readonly (readonly Row[])[]>,
  read: (sql: string, ...values: Values) => Promise<readonly Row[]>,
): InvoiceStore {
  return {
    async invoices({ workspaceId, number } = {}) {
      const rows = await read(
        `SELECT ${COLUMNS} FROM invoices WHERE (? IS NULL OR workspace_id = ?) AND (? IS NULL OR number = ?)
         ORDER BY issued_at, kind, sequence`,
        workspaceId ?? null,
        workspaceId ?? null,
        number ?? null,
        number ?? null,
      )
      return rows.map(toInvoice)
    },
    async issueInvoice(invoice, rowsExpected, capacity) {
      const ifIssued = [invoice.number, invoice.workspaceId, invoice.issuedAt]
      const [issued] = await transact([
        { sql: ISSUE, rows: [issueValues(invoice, rowsExpected)], read: true },
        { sql: ADD_ROW, rows: capacity.map((row) => [...rowValues(row), ...ifIssued]) },
      ])
      return issued?.length === 1
    },
    async issueNote(note, rowsExpected, reversal) {
      const [issued] = await transact([
        { sql: ISSUE, rows: [issueValues(note, rowsExpected)], read: true },
        { sql: REVERSE, rows: [reverseValues(note, reversal)] },
      ])
      return issued?.length === 1
    },
    async lastSequence(kind) {
      const [row] = await read('SELECT coalesce(max(sequence), 0) AS last FROM invoices WHERE kind = ?', kind)
      return Number(row?.['last'])
    },
    async sellers() {
      const rows = await read('SELECT DISTINCT seller_abn FROM invoices')
      return rows.map((row) => String(row['seller_abn']))
    },
    async reversibleSums(workspaceId, from, to, requestIds) {
      const ids = requestIds && JSON.stringify(requestIds)
      const rows = await read(
        `SELECT model, price_version, ${SUMS} FROM ${rowsAsSums(['model', 'price_version'], NOT_TAKEN_BACK)}
         GROUP BY model, price_version ORDER BY model, price_version`,
        workspaceId,
        from,
        to,
        ids,
        ids,
      )
      return rows.map(toPricedSums)
    },
  }
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

function reverseValues(note: IssuedInvoice, { requestIds, reason }: Reversal): Values {
  const ids = requestIds && JSON.stringify(requestIds)
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
    ids,
    ids,
    note.number,
    note.workspaceId,
    note.issuedAt,
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
