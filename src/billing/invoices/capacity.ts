import { capacityAmount } from './invoice.ts'
import { CAPACITY_ENDPOINT, type LedgerRow } from '../../ledger/rows.ts'
import { parseAud } from '../../shared/money/money.ts'
import { noUsage } from '../rating/rating.ts'
import type { Month } from '../../shared/money/sydney-time.ts'
import type { PricedSums } from '../usage/usage-sums.ts'
import type { PriceVersion, Workspace } from '../../workspaces/workspace.ts'
import { addTo, emptySums } from './priced-sums.ts'

/**
 * Bills reserved capacity as ledger rows, one for each part of the month with the same hourly rate. A lane's price
 * versions say when its reservation started, at what rate, and when it ended (null prices).
 */
export function capacityRows(
  prices: readonly PriceVersion[],
  workspace: Workspace,
  month: Month,
  now: number,
): LedgerRow[] {
  const lanes = Map.groupBy(
    prices.filter(({ model }) => model.endsWith(`@${workspace.name}`)),
    ({ model }) => model,
  )
  return [...lanes].flatMap(([lane, versions]) =>
    versions.flatMap((version, index) => {
      const perHour = parseAud(version.prices?.per_hour ?? '')
      const from = Math.max(version.effectiveFrom, month.from, workspace.createdAt)
      // Not only the next version: a clock that was fast leaves versions whose times are out of order.
      const later = versions.slice(index + 1).map(({ effectiveFrom }) => effectiveFrom)
      const to = Math.min(...later, month.to, now)
      if (perHour === undefined || to <= from) return []
      return [
        capacityRow({
          lane,
          workspace,
          month,
          version: version.id,
          from,
          to,
          amount: capacityAmount(to - from, perHour),
        }),
      ]
    }),
  )
}

interface ReservedPeriod {
  readonly lane: string
  readonly workspace: Workspace
  readonly month: Month
  readonly version: number
  readonly from: number
  readonly to: number
  readonly amount: bigint
}

function capacityRow({ lane, workspace, month, version, from, to, amount }: ReservedPeriod): LedgerRow {
  return {
    ...noUsage,
    requestId: `capacity:${version}:${month.name}`,
    workspaceId: workspace.id,
    keyId: '',
    model: lane.slice(0, lane.lastIndexOf('@')),
    lane,
    endpoint: CAPACITY_ENDPOINT,
    priceVersion: version,
    maxTokens: 0,
    startedAt: from,
    tier: 'default',
    estimated: false,
    outcome: 'completed',
    httpStatus: null,
    errorCode: null,
    amount,
    queueWaitMs: 0,
    firstTokenMs: null,
    durationMs: to - from,
    capacityMs: to - from,
    settledAt: month.to - 1,
  }
}

export function sumsOfCapacity(rows: readonly LedgerRow[]): PricedSums[] {
  return rows.map((row) => addTo(emptySums(row.model, row.priceVersion), row))
}
