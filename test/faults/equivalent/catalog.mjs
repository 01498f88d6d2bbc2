export default [
  ...[10, 9000].map((length) => ({
    file: 'src/catalog/file.ts',
    before: 'maxLength: 9,',
    after: `maxLength: ${length},`,
    why: 'The pattern has no longer texts.',
  })),
  ...[23, 22000].map((length) => ({
    file: 'src/catalog/file.ts',
    before: 'maxLength: 22,',
    after: `maxLength: ${length},`,
    why: 'The pattern has no longer texts.',
  })),
  {
    file: 'src/catalog/lost-prices.ts',
    before: 'const previous = before.dedicated.find((it) => it.lane === lane)',
    after: 'const previous = before.dedicated.findLast((it) => it.lane === lane)',
    why: 'No two deployments have the same lane.',
  },
]
