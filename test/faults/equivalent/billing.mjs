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
  {
    file: 'src/billing/invoices/month-documents.ts',
    before: 'const to = isFirst ? periodTo : issuedAt + 1',
    after: 'const to = isFirst ? periodTo : issuedAt + 2',
    why: 'The rows of a later invoice are all of the time at which it was issued.',
  },
]
