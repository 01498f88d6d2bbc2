import type { AdjustmentNoteStore, InvoiceStore } from './invoices/invoice-store.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { ReportStore } from './usage/report-store.ts'
import type { UsageStore } from './usage/usage-store.ts'

/**
 * The same store, whose reads of rows and sums wait until the store has every row that the ledger has made durable. So
 * usage and invoices include everything that was settled before, even rows that are still on their way to the store.
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
    notInvoiced: afterwards(store.notInvoiced),
  }
}
