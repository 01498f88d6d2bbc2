import { fileWriter, ParquetWriter, schemaFromColumnData } from 'hyparquet-writer'
import type { LedgerRow } from '../../ledger/rows.ts'
import type { UsageQuery, UsageStore } from './usage-store.ts'
import { eachPage, exportColumns, exportView, type ExportColumn } from './usage-export.ts'

/** Exports ledger rows as a Parquet file with the same columns as the CSV. Amounts and counts are 64-bit integers. */

type ColumnType = 'STRING' | 'INT64' | 'BOOLEAN' | 'TIMESTAMP'
type Value = string | bigint | boolean | Date | null

const TEXTS: ReadonlySet<string> = new Set<ExportColumn>([
  'request_id',
  'model',
  'endpoint',
  'lane',
  'key_id',
  'outcome',
  'error_code',
  'date_sydney',
  'amount_aud',
  'corrects',
  'credit_note',
  'reason',
  'service_tier',
])

/** Large enough to compress well, small enough to keep in memory. */
const GROUP_ROWS = 20_000

export async function writeParquet(store: UsageStore, query: UsageQuery, file: string): Promise<void> {
  const columns = (rows: readonly LedgerRow[]) => {
    const views = rows.map((row) => exportView(row))
    return exportColumns.map((name) => {
      const type = typeOf(name)
      return { name, type, data: views.map((view) => valueOf(view[name], type)) }
    })
  }
  const writer = new ParquetWriter({
    writer: fileWriter(file),
    schema: schemaFromColumnData({ columnData: columns([]) }),
  })
  let rows: LedgerRow[] = []
  const writeGroup = async (): Promise<void> => {
    await writer.write({ columnData: columns(rows), rowGroupSize: GROUP_ROWS })
    rows = []
  }
  for await (const page of eachPage(store, query)) {
    rows.push(...page)
    if (rows.length >= GROUP_ROWS) await writeGroup()
  }
  await writeGroup()
  await writer.finish()
}

function typeOf(column: ExportColumn): ColumnType {
  if (TEXTS.has(column)) return 'STRING'
  if (column === 'started' || column === 'settled') return 'TIMESTAMP'
  return column === 'estimated' ? 'BOOLEAN' : 'INT64'
}

function valueOf(value: unknown, type: ColumnType): Value {
  if (value === undefined || value === null) return null
  switch (type) {
    case 'INT64':
      return BigInt(value as string | number)
    case 'TIMESTAMP':
      return new Date(value as string)
    case 'STRING':
    case 'BOOLEAN':
      return value as string | boolean
  }
}
