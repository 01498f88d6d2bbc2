import type { LedgerRow } from '../rows.ts'
import { RefusedWrite } from '../../shared/refused-write.ts'
import type { LedgerStore } from '../ledger.ts'
import {
  command,
  commandForGiven,
  readRows,
  writeOne,
  type Database,
  type Row,
  type Statement,
  type Transaction,
  type Values,
} from '../../store/database.ts'
import type { SqlDialect } from '../../store/fragments.ts'
import {
  GIVEN_COLUMNS,
  readIntentValues,
  readRefusedRowText,
  refusedRowText,
  ROW_COLUMNS,
  rowValues,
} from './ledger-rows.ts'
import { addingRows } from './usage-sums.ts'

const SET_ASIDE = `INSERT INTO ledger_refused (request_id, workspace_id, refused_at, reason, content)
  VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`
const REFUSED = `SELECT request_id, workspace_id, refused_at, reason, content FROM ledger_refused
  ORDER BY refused_at, request_id LIMIT ?`
const APPLIED = `INSERT INTO journal_positions (owner, segment, position) VALUES (?, ?, ?)
  ON CONFLICT (owner) DO UPDATE SET segment = excluded.segment, position = excluded.position`
const POSITION = 'SELECT segment, position FROM journal_positions WHERE owner = ?'
const EARLIER_INTENTS = 'SELECT requests FROM intents WHERE owner = ?'
const FORGET_INTENTS = 'DELETE FROM intents WHERE owner = ?'

/** The owner is the same after a restart, and has one journal. */
export function ledgerQueries(database: Database, owner: string): LedgerStore {
  const SETTLE = settle(database.dialect)
  const NO_LONGER_REFUSED = `DELETE FROM ledger_refused WHERE request_id IN (${database.dialect.selectTexts('?')})`
  const settling = (rows: readonly LedgerRow[]): Statement =>
    commandForGiven(
      SETTLE,
      rows.map((row) => [...rowValues(row), row.workspaceId]),
    )

  return {
    async addRows(rows, through) {
      const applied = through ? [command(APPLIED, owner, through.segment, through.offset)] : []
      await database.transact(prepared(() => addingRows([settling(rows), ...applied])))
    },
    async journalPosition() {
      const [row] = await readRows(database, POSITION, owner)
      return row && { segment: Number(row['segment']), offset: Number(row['position']) }
    },
    forgetJournal: () => writeOne(database, 'DELETE FROM journal_positions WHERE owner = ?', owner),
    async setAside(row, reason, at) {
      await writeOne(database, SET_ASIDE, row.requestId, row.workspaceId, at, reason, refusedRowText(row))
    },
    async refusedRows(limit) {
      const rows = await readRows(database, REFUSED, limit)
      return rows.map((row) => ({
        requestId: String(row['request_id']),
        workspaceId: String(row['workspace_id']),
        reason: String(row['reason']),
        refusedAt: Number(row['refused_at']),
        row: readRefusedRowText(String(row['content'])),
      }))
    },
    async addRefused(rows) {
      const ids = JSON.stringify(rows.map(({ requestId }) => requestId))
      await database.transact(prepared(() => addingRows([settling(rows), command(NO_LONGER_REFUSED, ids)])))
    },
    async earlierIntents() {
      const batches = await readRows(database, EARLIER_INTENTS, owner)
      const refused = new Set((await readRows(database, 'SELECT request_id FROM ledger_refused')).map(idOf))
      const requests = batches.flatMap((batch) => JSON.parse(String(batch['requests'])) as Values[])
      return requests.map(readIntentValues).filter(({ requestId }) => !refused.has(requestId))
    },
    async forgetEarlierIntents() {
      await writeOne(database, FORGET_INTENTS, owner)
    },
    async lastSettledAt() {
      const [last] = await readRows(database, 'SELECT settled_at FROM ledger ORDER BY position DESC LIMIT 1')
      return last && Number(last['settled_at'])
    },
  }
}

/** A row that cannot even be bound to a statement is refused permanently, like one that the database refuses. */
function prepared(transaction: () => Transaction): Transaction {
  try {
    return transaction()
  } catch (cause) {
    throw new RefusedWrite((cause as Error).message, { cause })
  }
}

/**
 * Rows may be added again after an error of unknown effect, so an existing row stays as it is. A row that arrives after
 * its month was invoiced is billed in the next month, so that each row is in exactly one invoice.
 */
function settle({ givenValue, fromGiven, greatest }: SqlDialect): string {
  const values = ROW_COLUMNS.map((column) =>
    column === 'settled_at' || column === 'settled_day'
      ? greatest(givenValue(column), 'closed.until')
      : givenValue(column),
  )
  const closed = `(SELECT coalesce(max(period_to), 0) AS until FROM invoices
    WHERE workspace_id = ${givenValue(INVOICED)} AND kind = 'tax_invoice') AS closed`
  return `INSERT INTO ledger (${ROW_COLUMNS.join(', ')}) SELECT ${values.join(', ')}
    ${fromGiven([...GIVEN_COLUMNS, { name: INVOICED, type: 'text' }], closed)} WHERE true ON CONFLICT DO NOTHING`
}

/** The workspace again, to find its closed months. */
const INVOICED = 'invoiced_workspace'

const idOf = (row: Row): string => String(row['request_id'])
