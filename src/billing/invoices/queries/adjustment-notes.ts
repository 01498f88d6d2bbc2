import { sydneyDay } from '../../../shared/money/sydney-time.ts'
import { CREDIT } from '../../../ledger/rows.ts'
import type { AdjustmentNoteStore, Reversal, UnfinishedNote } from '../invoice-store.ts'
import { command, query, readRows, type Database, type Row, type Values } from '../../../store/database.ts'
import { addEmail } from './emails.ts'
import { addAmounts } from './payments.ts'
import { addIssued, documentValues, INVOICE_COLUMNS, IS_NEXT, isNextValues, toInvoice } from './invoices.ts'
import { placeholders, ROW_COLUMNS, toLedgerRow } from '../../../ledger/queries/ledger-rows.ts'
import { addingRows } from '../../../ledger/queries/usage-sums.ts'
import { rowsAsSums, sumColumns, toPricedSums } from '../../usage/queries/usage.ts'

const NOTE_COLUMNS = [
  ...INVOICE_COLUMNS,
  'reason',
  'request_ids',
  'rows_of',
  'credits_of',
  'rows_to',
  'after_settled_at',
  'after_request_id',
] as const

const BEGIN = `INSERT INTO unfinished_notes (slot, ${NOTE_COLUMNS.join(', ')}) SELECT 1, ${placeholders(NOTE_COLUMNS)}
  WHERE ${IS_NEXT} ON CONFLICT DO NOTHING RETURNING number`

/** Only if no other process has continued the note in the meantime. */
const MOVE_ON = `UPDATE unfinished_notes SET after_settled_at = ?, after_request_id = ?
  WHERE number = ? AND after_settled_at = ? AND after_request_id = ?`

/** The last of the next rows. The rows of issued documents never change. */
const END_OF_NEXT = `SELECT settled_at, request_id FROM (
    SELECT settled_at, request_id FROM ledger
    WHERE workspace_id = ? AND (settled_at, request_id) > (?, ?) AND settled_at < ?
    ORDER BY settled_at, request_id LIMIT ?
  ) AS next_rows ORDER BY settled_at DESC, request_id DESC LIMIT 1`

const FINISH = `INSERT INTO invoices (${INVOICE_COLUMNS.join(', ')})
  SELECT ${INVOICE_COLUMNS.join(', ')} FROM unfinished_notes AS note
  WHERE number = ? AND ? = (SELECT coalesce(sum(row_count), 0) FROM usage_days
    WHERE workspace_id = note.workspace_id AND day = ? AND credit_note = note.number)
  RETURNING number`

const FORGET = `DELETE FROM unfinished_notes
  WHERE EXISTS (SELECT 1 FROM invoices WHERE invoices.number = unfinished_notes.number)`

interface Period {
  readonly from: number
  readonly to: number
}

/** A condition for rows of the ledger, and its values. */
interface SomeRows {
  readonly where: string
  readonly values: Values
}

interface NextRows extends SomeRows {
  readonly last: UnfinishedNote['after']
}

export function adjustmentNoteQueries(database: Database): AdjustmentNoteStore {
  const { dialect } = database

  async function nextRows({ note, reversal, after }: UnfinishedNote, rowsMax: number): Promise<NextRows | undefined> {
    const { workspaceId } = note
    if (reversal.requestIds !== null) {
      const requestIds = reversal.requestIds.filter((id) => id > after.requestId).slice(0, rowsMax)
      const requestId = requestIds.at(-1)
      if (requestId === undefined) return undefined
      const rows = takenBack(workspaceId, { from: note.periodFrom, to: note.periodTo }, { ...reversal, requestIds })
      return { ...rows, last: { settledAt: after.settledAt, requestId } }
    }
    const [end] = await readRows(
      database,
      END_OF_NEXT,
      workspaceId,
      after.settledAt,
      after.requestId,
      reversal.to,
      rowsMax,
    )
    if (!end) return undefined
    const last = { settledAt: Number(end['settled_at']), requestId: String(end['request_id']) }
    const ofDocuments = inDocuments({ from: note.periodFrom, to: note.periodTo }, reversal)
    return {
      where: `workspace_id = ? AND (settled_at, request_id) > (?, ?) AND (settled_at, request_id) <= (?, ?)
        AND ${ofDocuments.where}`,
      values: [workspaceId, after.settledAt, after.requestId, last.settledAt, last.requestId, ...ofDocuments.values],
      last,
    }
  }

  /** The rows of the documents that are reversed. The rows of a first invoice are determined by the month alone. */
  function inDocuments(month: Period, { rowsOf, creditsOf }: Reversal): SomeRows {
    return {
      where: `(credit_note <> '' OR (settled_at >= ? AND settled_at < ?))
        AND (credit_note IN (${dialect.selectTexts('?')})
          OR (corrects IS NULL AND credit_note IN (${dialect.selectTexts('?')})))`,
      values: [month.from, month.to, JSON.stringify(rowsOf), JSON.stringify(creditsOf)],
    }
  }

  function takenBack(workspaceId: string, month: Period, reversal: Reversal): SomeRows {
    const { from, to, requestIds } = reversal
    const ofDocuments = inDocuments(month, reversal)
    const values = [workspaceId, from, to, ...ofDocuments.values]
    if (requestIds === null) {
      return { where: `workspace_id = ? AND settled_at >= ? AND settled_at < ? AND ${ofDocuments.where}`, values }
    }
    return {
      // Expressions, so that the database looks up the ids instead of reading the whole month.
      where: `workspace_id || '' = ? AND settled_at + 0 >= ? AND settled_at + 0 < ? AND ${ofDocuments.where}
        AND request_id IN (${dialect.selectTexts('?')})`,
      values: [...values, JSON.stringify(requestIds)],
    }
  }

  return {
    async beginNote(note, rowsExpected, { requestIds, reason, rowsOf, creditsOf, from, to }) {
      const values = [
        ...documentValues(note),
        reason,
        requestIds && JSON.stringify([...new Set(requestIds)].toSorted()),
        JSON.stringify(rowsOf),
        JSON.stringify(creditsOf),
        to,
        from,
        '',
        ...isNextValues(note, rowsExpected),
      ]
      const [begun] = await database.transact({
        access: 'write',
        locks: ['invoices'],
        statements: [query(BEGIN, ...values)],
      })
      return begun?.length === 1
    },
    async unfinishedNote() {
      const [row] = await readRows(database, `SELECT ${NOTE_COLUMNS.join(', ')} FROM unfinished_notes`)
      return row && toUnfinishedNote(row)
    },
    async continueNote(unfinished, rowsMax) {
      const next = await nextRows(unfinished, rowsMax)
      if (!next) return false
      const { where, values, last } = next
      const { note, after } = unfinished
      await database.transact(
        addingRows([
          command(reverse(where), ...reverseValues(unfinished), ...values),
          command(MOVE_ON, last.settledAt, last.requestId, note.number, after.settledAt, after.requestId),
        ]),
      )
      return true
    },
    async finishNote(note, { isMailed } = { isMailed: false }) {
      const { number, document, issuedAt } = note
      const [finished] = await database.transact({
        access: 'write',
        locks: ['invoices'],
        statements: [
          query(FINISH, number, document.ledger_rows, sydneyDay(issuedAt)),
          addAmounts(note),
          addIssued(note),
          ...(isMailed ? [addEmail(note)] : []),
          command(FORGET),
        ],
      })
      return finished?.length === 1
    },
    async reversible(workspaceId, month, reversal) {
      const { where, values } = takenBack(workspaceId, month, reversal)
      const isReversible = `${where} AND ${IS_REVERSIBLE}`
      const source = rowsAsSums(['model', 'price_version'], isReversible, 'reversible')
      const [sums = [], credits = []] = await database.transact({
        access: 'read',
        statements: [
          query(
            `SELECT model, price_version, ${sumColumns(dialect)} FROM ${source}
             GROUP BY model, price_version ORDER BY model, price_version`,
            ...values,
          ),
          query(`SELECT ${ROW_COLUMNS.join(', ')} FROM ledger WHERE ${isReversible} AND ${IS_CREDIT}`, ...values),
        ],
      })
      return { sums: sums.map(toPricedSums), credits: credits.map(toLedgerRow) }
    },
  }
}

const IS_CREDIT = `endpoint = '${CREDIT}'`

/**
 * Not reversed yet, and not cancelled out: a row that was corrected before its month was invoiced, and its correction,
 * cancel each other out in the same document. A correction of that correction counts again.
 */
const IS_REVERSIBLE = `NOT EXISTS (SELECT 1 FROM ledger AS later WHERE later.corrects = ledger.request_id)
  AND (corrects IS NULL OR 0 = (
    WITH RECURSIVE corrected (corrects) AS (
      SELECT one.corrects FROM ledger AS one
      WHERE one.request_id = ledger.corrects AND one.credit_note = ledger.credit_note
      UNION ALL SELECT one.corrects FROM corrected JOIN ledger AS one
      ON one.request_id = corrected.corrects AND one.credit_note = ledger.credit_note
    ) SELECT count(*) % 2 FROM corrected))`

/** Adds the reversal of each row. Has no effect if another process has done so. A credit keeps its own reason. */
function reverse(where: string): string {
  return `INSERT INTO ledger (${ROW_COLUMNS.join(', ')})
    SELECT ? || ':' || request_id, workspace_id, key_id, model, lane, endpoint, price_version, max_tokens, ?, tier,
      -input_tokens, -cached_input_tokens, -output_tokens, -images, -audio_ms, estimated, outcome, NULL, NULL, -amount_pico_aud,
      0, NULL, 0, -capacity_ms, request_id, ?, CASE WHEN ${IS_CREDIT} THEN reason ELSE ? END, ?, ?
    FROM ledger WHERE ${where} AND ${IS_REVERSIBLE}`
}

function reverseValues({ note, reversal }: UnfinishedNote): Values {
  const { number, issuedAt } = note
  return [number, issuedAt, number, reversal.reason, issuedAt, sydneyDay(issuedAt)]
}

function toUnfinishedNote(row: Row): UnfinishedNote {
  const ids = row['request_ids'] as string | null
  return {
    note: toInvoice(row),
    reversal: {
      rowsOf: JSON.parse(String(row['rows_of'])) as string[],
      creditsOf: JSON.parse(String(row['credits_of'])) as string[],
      from: Number(row['period_from']),
      to: Number(row['rows_to']),
      requestIds: ids === null ? null : (JSON.parse(ids) as string[]),
      reason: String(row['reason']),
    },
    after: { settledAt: Number(row['after_settled_at']), requestId: String(row['after_request_id']) },
  }
}
