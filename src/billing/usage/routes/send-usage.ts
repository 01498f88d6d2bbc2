import { Readable } from 'node:stream'
import type { LedgerRow } from '../../../ledger/rows.ts'
import { exportFileName, exportRows, exportTypes, type ExportFormat } from '../usage-export.ts'
import { rowsQuery, usageReport, type ReportScope } from '../usage-report.ts'
import { ApiError } from '../../../shared/errors.ts'
import type { UsageStore } from '../usage-store.ts'
import type { Exchange } from '../../../server/exchange.ts'

/** Usage, for the keys of a workspace and for the operator. */

export async function sendUsage(
  exchange: Exchange,
  format: 'json' | ExportFormat,
  store: UsageStore,
  scope: ReportScope,
): Promise<void> {
  const query = new URLSearchParams(exchange.query)
  if (format === 'json')
    return exchange.sendAnswer('application/json', await reportOf(exchange, store, scope, query), {})
  if (scope.workspaceId === undefined) {
    throw new ApiError('invalid_value', "A download is for one workspace: add 'workspace'.", { param: 'workspace' })
  }
  const rows = rowsQuery(scope.workspaceId, query)
  const pieces = exportRows(store, rows, format)
  await exchange.sendStream(Readable.from(pieces), {
    'Content-Type': exportTypes[format],
    'Content-Disposition': `attachment; filename="${exportFileName(rows, format)}"`,
  })
}

async function reportOf(
  exchange: Exchange,
  store: UsageStore,
  scope: ReportScope,
  query: URLSearchParams,
): Promise<readonly Buffer[]> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const text of usageReport(store, scope, query)) {
    const piece = Buffer.from(text)
    bytes += piece.length
    exchange.holdAnswer(bytes)
    pieces.push(piece)
  }
  return pieces
}

/** Sends one row, by the X-Request-Id of its response. A row without a view is not found. */
export async function sendUsageRow(
  exchange: Exchange,
  store: UsageStore,
  requestId: string,
  viewOf: (row: LedgerRow) => object | undefined,
): Promise<void> {
  const row = await store.usageRow(requestId)
  const view = row && viewOf(row)
  if (!view) {
    throw new ApiError('not_found', `There is no settled request "${requestId.slice(0, 100)}".`, {
      param: 'request_id',
    })
  }
  exchange.sendJson(JSON.stringify(view))
}
