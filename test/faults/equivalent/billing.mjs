export default [
  {
    file: 'src/billing/invoices.ts',
    before: 'return all.reduce((sum, { amount }) => sum + amount, 0n)',
    after: 'return all.reduce((sum, { amount }) => sum - amount, 0n)',
    why: 'Two such sums are compared with each other.',
  },
]
