export default [
  {
    file: 'src/store/sqlite/thread.ts',
    before: 'let lastId = 0',
    after: 'let lastId = 1',
    why: 'The ids only have to differ from each other.',
  },
]
