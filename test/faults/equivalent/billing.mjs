export default [
  {
    file: 'src/billing/invoices/invoice-drafts.ts',
    before: 'return all.reduce((sum, { amount }) => sum + amount, 0n)',
    after: 'return all.reduce((sum, { amount }) => sum - amount, 0n)',
    why: 'Two such sums are compared with each other.',
  },
  {
    file: 'src/ledger/reconcile/reconcile-documents.ts',
    before: 'if (one.model !== other.model) return one.model < other.model ? -1 : 1',
    after: 'if (one.model !== other.model) return !(one.model < other.model) ? -1 : 1',
    why: 'Lines are compared in any order. What must be in order are the versions of one model.',
  },
]
