import type { AdjustmentNoteStore, InvoiceStore } from '../ports/invoices.ts'
import type { Ledger } from '../ports/ledger.ts'
import type { ReportStore } from '../ports/reports.ts'
import type { UsageStore } from '../ports/usage.ts'

/**
 * The same store, whose reads of rows and sums wait until the store has every row that the ledger has made durable.
 * Whoever reads usage or computes an invoice then sees what was settled before, whatever the ledger keeps in front of the store.
 */
export function settledReads<Reads extends UsageStore & ReportStore & InvoiceStore & AdjustmentNoteStore>(
  store: Reads,
  ledger: Pick<Ledger, 'readable'>,
): Reads {
  const afterwards =
    <Args extends unknown[], Result>(read: (...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> => {
      await ledger.readable()
      return read(...args)
    }
  return {
    ...store,
    recentRequests: afterwards(store.recentRequests),
    sampledRequests: afterwards(store.sampledRequests),
    usageOverTime: afterwards(store.usageOverTime),
    groupsOverTime: afterwards(store.groupsOverTime),
    largestGroups: afterwards(store.largestGroups),
    usage: afterwards(store.usage),
    usageRow: afterwards(store.usageRow),
    usageRows: afterwards(store.usageRows),
    usageSums: afterwards(store.usageSums),
    usageTotal: afterwards(store.usageTotal),
    pricedSums: afterwards(store.pricedSums),
    wrongSums: afterwards(store.wrongSums),
    reversible: afterwards(store.reversible),
    credits: afterwards(store.credits),
  }
}
