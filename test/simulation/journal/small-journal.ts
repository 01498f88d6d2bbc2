import { mutantsOf, type Mutation } from '../../mutants.ts'
import type { JournalCode } from './world.ts'

/** The journal with small limits, so that a short schedule reaches them. */
const small: readonly Mutation[] = [
  {
    name: 'small segments',
    file: 'journal/journal.ts',
    find: 'SEGMENT_BYTES = 4 * 1024 * 1024',
    replace: 'SEGMENT_BYTES = 900',
  },
  {
    name: 'small frames',
    file: 'journal/journal.ts',
    find: 'FRAME_ENTRIES_MAX = 2000',
    replace: 'FRAME_ENTRIES_MAX = 4',
  },
  {
    name: 'few plain entries',
    file: 'journal/journal.ts',
    find: 'PLAIN_ENTRIES_MAX = 64',
    replace: 'PLAIN_ENTRIES_MAX = 3',
  },
  {
    name: 'small pieces',
    file: 'projector.ts',
    find: 'SPANS_BYTES_MAX = 4 * 1024 * 1024',
    replace: 'SPANS_BYTES_MAX = 700',
  },
  { name: 'small transactions', file: 'projection.ts', find: 'ROWS_MAX = 1000', replace: 'ROWS_MAX = 3' },
]

export function smallJournal() {
  const mutants = mutantsOf<JournalCode>(new URL('../../../src/ledger/open-ledger.ts', import.meta.url))
  return {
    remove: mutants.remove,
    /** With small limits, and broken if there is a mutation. */
    load: async (...mutations: readonly Mutation[]): Promise<JournalCode> => {
      const code = await mutants.load(...small, ...mutations, {
        name: 'one module has everything',
        find: "import { openJournal } from './journal/journal.ts'",
        replace: "export { projectSpans } from './projection.ts'\nimport { openJournal } from './journal/journal.ts'",
      })
      return code
    },
  }
}
