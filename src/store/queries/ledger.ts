import { sydneyDay } from '../../core/money/sydney-time.ts'
import type { LedgerStore } from '../../ports/ledger.ts'
import { command, commandForEach, query, type Database } from '../database.ts'
import type { SqlDialect } from '../fragments.ts'
import { intentBatches } from './intent-batches.ts'
import { INTENT_COLUMNS, INTENT_NUMBERS, intentValues, placeholders, ROW_COLUMNS, rowValues } from './ledger-rows.ts'
import { addingRows } from './usage-sums.ts'

const NOTE = 'INSERT INTO intents (owner, batch, requests) VALUES (?, ?, ?)'
const CLEAR = 'DELETE FROM intents WHERE owner = ? AND batch = ?'
const CLEAR_ALL = 'DELETE FROM intents WHERE owner = ?'

/** Who writes intents: `owner` lasts, `incarnation` is new each time a process opens the store. */
export interface IntentOwner {
  readonly owner: string
  readonly incarnation: string
}

export function ledgerQueries(database: Database, { owner, incarnation }: IntentOwner): LedgerStore {
  const SETTLE = settle(database.dialect)
  const RECOVER = recover(database.dialect)
  const batches = intentBatches(incarnation)
  return {
    async writeLedger(batch) {
      const { intents, rows } = batch
      const next = batches.next()
      const notes = intents.length === 0 ? [] : [[owner, next.name, JSON.stringify(intents.map(intentValues))]]
      const intentStatements = [
        commandForEach(NOTE, notes),
        commandForEach(
          CLEAR,
          next.settled.map((name) => [owner, name]),
        ),
      ]
      const settled = commandForEach(
        SETTLE,
        rows.map((row) => [...rowValues(row), row.workspaceId]),
      )
      await database.transact(
        rows.length === 0
          ? { access: 'write', locks: [], statements: intentStatements }
          : addingRows([...intentStatements, settled]),
      )
      batches.written(next, batch)
    },
    async recoverIntents(now) {
      const [recovered] = await database.transact(
        addingRows([query(RECOVER, now, sydneyDay(now), owner), command(CLEAR_ALL, owner)]),
      )
      return recovered?.length ?? 0
    },
  }
}

/**
 * A batch may be written again after an error of unknown effect, so a row that is there already stays as it is.
 * A row that comes after its month was invoiced belongs to the next month, so that each row is in one invoice.
 */
function settle({ greatest }: SqlDialect): string {
  const asGiven = ROW_COLUMNS.slice(0, -2)
  return `INSERT INTO ledger (${ROW_COLUMNS.join(', ')})
    SELECT ${placeholders(asGiven)}, ${greatest('?', 'closed.until')}, ${greatest('?', 'closed.until')}
    FROM (SELECT coalesce(max(period_to), 0) AS until FROM invoices
      WHERE workspace_id = ? AND kind = 'tax_invoice') AS closed
    WHERE true ON CONFLICT DO NOTHING`
}

/** Settles at nothing every request that its owner noted and never settled. */
function recover({ jsonElements, jsonInteger, jsonText }: SqlDialect): string {
  const intent = INTENT_COLUMNS.map((column, index) =>
    INTENT_NUMBERS.has(column) ? jsonInteger('request.value', index) : jsonText('request.value', index),
  )
  return `INSERT INTO ledger (${ROW_COLUMNS.join(', ')})
    SELECT ${intent.join(', ')}, 0, 0, 0, 0, 0, 0, 'interrupted', 0, 0, NULL, 0, 0, NULL, '', NULL, ?, ?
    FROM intents, ${jsonElements('intents.requests', 'request')}
    WHERE intents.owner = ? AND NOT EXISTS
      (SELECT 1 FROM ledger WHERE ledger.request_id = ${jsonText('request.value', 0)})
    RETURNING request_id`
}
