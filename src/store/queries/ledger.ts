import { sydneyDay } from '../../core/money/sydney-time.ts'
import type { LedgerRow } from '../../core/money/ledger.ts'
import { RefusedWrite, writeInParts } from '../../core/refused-write.ts'
import type { LedgerStore } from '../../ports/ledger.ts'
import {
  command,
  commandForEach,
  query,
  readRows,
  writeOne,
  type Database,
  type Statement,
  type Transaction,
} from '../database.ts'
import type { SqlDialect } from '../fragments.ts'
import { intentBatches } from './intent-batches.ts'
import {
  INTENT_COLUMNS,
  INTENT_NUMBERS,
  interruptedRow,
  intentValues,
  placeholders,
  readRefusedText,
  refusedText,
  ROW_COLUMNS,
  rowValues,
} from './ledger-rows.ts'
import { addingRows } from './usage-sums.ts'

const NOTE = 'INSERT INTO intents (owner, batch, requests) VALUES (?, ?, ?)'
const CLEAR = 'DELETE FROM intents WHERE owner = ? AND batch = ?'
const CLEAR_ALL = 'DELETE FROM intents WHERE owner = ?'
const SET_ASIDE = `INSERT INTO ledger_refused (request_id, workspace_id, refused_at, reason, content)
  VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`
const REFUSED = `SELECT request_id, workspace_id, refused_at, reason, content FROM ledger_refused
  ORDER BY refused_at, request_id LIMIT ?`
const NO_LONGER_REFUSED = 'DELETE FROM ledger_refused WHERE request_id = ?'

/** Who writes intents: `owner` lasts, `incarnation` is new each time a process opens the store. */
export interface IntentOwner {
  readonly owner: string
  readonly incarnation: string
}

export function ledgerQueries(database: Database, { owner, incarnation }: IntentOwner): LedgerStore {
  const SETTLE = settle(database.dialect)
  const OPEN = openRequests(database.dialect)
  const RECOVER = recover(database.dialect)
  const batches = intentBatches(incarnation)
  const settling = (rows: readonly LedgerRow[]): Statement =>
    commandForEach(
      SETTLE,
      rows.map((row) => [...rowValues(row), row.workspaceId]),
    )
  const clearing = (names: readonly string[]): Statement =>
    commandForEach(
      CLEAR,
      names.map((name) => [owner, name]),
    )

  async function setAside(row: LedgerRow, reason: string, at: number): Promise<void> {
    const next = batches.next()
    const values = [row.requestId, row.workspaceId, at, reason, refusedText(row)]
    const statements = [clearing(next.settled), command(SET_ASIDE, ...values)]
    await database.transact({ access: 'write', locks: [], statements })
    batches.written(next, { intents: [], rows: [row] })
  }

  return {
    setAside,
    async writeLedger(batch) {
      const { intents, rows } = batch
      const next = batches.next()
      const transaction = prepared(() => {
        const notes = intents.length === 0 ? [] : [[owner, next.name, JSON.stringify(intents.map(intentValues))]]
        const statements = [commandForEach(NOTE, notes), clearing(next.settled)]
        return rows.length === 0
          ? ({ access: 'write', locks: [], statements } as const)
          : addingRows([...statements, settling(rows)])
      })
      await database.transact(transaction)
      batches.written(next, batch)
    },
    async refusedRows(limit) {
      const rows = await readRows(database, REFUSED, limit)
      return rows.map((row) => ({
        requestId: String(row['request_id']),
        workspaceId: String(row['workspace_id']),
        reason: String(row['reason']),
        refusedAt: Number(row['refused_at']),
        row: readRefusedText(String(row['content'])),
      }))
    },
    async addRefused(rows) {
      const ids = rows.map(({ requestId }) => [requestId])
      await database.transact(prepared(() => addingRows([settling(rows), commandForEach(NO_LONGER_REFUSED, ids)])))
    },
    async recoverIntents(now) {
      try {
        const [recovered] = await database.transact(
          addingRows([query(RECOVER, now, sydneyDay(now), owner), command(CLEAR_ALL, owner)]),
        )
        return recovered?.length ?? 0
      } catch (error) {
        if (!(error instanceof RefusedWrite)) throw error
      }
      const open = (await readRows(database, OPEN, owner)).map((row) => interruptedRow(row, now))
      await writeInParts(
        open,
        async (rows) => void (await database.transact(prepared(() => addingRows([settling(rows)])))),
        (row, refusal) => setAside(row, refusal.message, now),
      )
      await writeOne(database, CLEAR_ALL, owner)
      return open.length
    },
    async lastSettledAt() {
      const [last] = await readRows(database, 'SELECT settled_at FROM ledger ORDER BY position DESC LIMIT 1')
      return last && Number(last['settled_at'])
    },
  }
}

/** A row that cannot even be written as a statement is refused for good, like one that the database refuses. */
function prepared(transaction: () => Transaction): Transaction {
  try {
    return transaction()
  } catch (cause) {
    throw new RefusedWrite((cause as Error).message, { cause })
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
function recover(dialect: SqlDialect): string {
  return `INSERT INTO ledger (${ROW_COLUMNS.join(', ')})
    SELECT ${intentColumns(dialect).join(', ')}, 0, 0, 0, 0, 0, 0, 'interrupted', 0, 0, NULL, 0, 0, NULL, '', NULL, ?, ?
    FROM ${openIntents(dialect)} RETURNING request_id`
}

/** The same requests, as they were noted. */
function openRequests(dialect: SqlDialect): string {
  const columns = intentColumns(dialect).map((value, index) => `${value} AS ${INTENT_COLUMNS[index]}`)
  return `SELECT ${columns.join(', ')} FROM ${openIntents(dialect)}`
}

function intentColumns({ jsonInteger, jsonText }: SqlDialect): readonly string[] {
  return INTENT_COLUMNS.map((column, index) =>
    INTENT_NUMBERS.has(column) ? jsonInteger('request.value', index) : jsonText('request.value', index),
  )
}

/** The intents of an owner whose requests have no row yet, neither in the ledger nor set aside. */
function openIntents({ jsonElements, jsonText }: SqlDialect): string {
  const id = jsonText('request.value', 0)
  return `intents, ${jsonElements('intents.requests', 'request')} WHERE intents.owner = ?
    AND NOT EXISTS (SELECT 1 FROM ledger WHERE ledger.request_id = ${id})
    AND NOT EXISTS (SELECT 1 FROM ledger_refused WHERE ledger_refused.request_id = ${id})`
}
