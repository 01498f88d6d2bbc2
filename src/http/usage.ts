import { Readable } from 'node:stream'
import { usageView } from '../accounts/views.ts'
import { exportFormats, exportRows, exportTypes } from '../billing/usage-export.ts'
import { rowsQuery, usageReport, type ReportScope } from '../billing/usage-report.ts'
import { ApiError } from '../core/errors.ts'
import type { UsageStore } from '../ports/usage.ts'
import type { Exchange } from './exchange.ts'
import { invalidParameter } from '../core/parameter-errors.ts'

/** What was used, for a workspace's own key and for the operator. */

export async function sendUsage(exchange: Exchange, store: UsageStore, scope: ReportScope): Promise<void> {
  const query = new URLSearchParams(exchange.query)
  const asked = query.get('format') ?? 'json'
  if (asked === 'json') return exchange.sendJson(JSON.stringify(await usageReport(store, scope, query)))
  const format = exportFormats.find((it) => it === asked)
  if (!format) throw invalidParameter('invalid_value', 'format', `one of json, ${exportFormats.join(', ')}`)
  if (scope.workspaceId === undefined) throw invalidParameter('invalid_value', 'workspace', 'given, for a download')
  const pieces = exportRows(store, rowsQuery(scope.workspaceId, query), format)
  await exchange.sendStream(Readable.from(pieces), {
    'Content-Type': exportTypes[format],
    'Content-Disposition': `attachment; filename="usage.${format}"`,
  })
}

/** One row, by the X-Request-Id of its response. Those of other workspaces are not there. */
export async function sendUsageRow(
  exchange: Exchange,
  store: UsageStore,
  requestId: string,
  workspaceId: string | undefined,
): Promise<void> {
  const row = await store.usageRow(requestId)
  if (!row || (workspaceId !== undefined && row.workspaceId !== workspaceId)) {
    throw new ApiError('not_found', `There is no settled request "${requestId.slice(0, 100)}".`, {
      param: 'request_id',
    })
  }
  exchange.sendJson(JSON.stringify(usageView(row)))
}
