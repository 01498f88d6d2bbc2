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
]
