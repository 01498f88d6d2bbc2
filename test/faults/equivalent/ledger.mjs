// Mutants of scripts/mutate.mjs that no test should kill: { file, before, after, why }, as the script prints them, and
// `within` where the same line occurs in several functions.
export default [
  {
    file: 'src/ledger/journal/journal-files-on-disk.ts',
    before: 'while (done < bytes.length) {',
    after: 'while (done <= bytes.length) {',
    why: 'One more read, of no bytes, which ends the loop.',
  },
  {
    file: 'src/ledger/journal/journal.ts',
    before: 'if (end > 0) previous = { segment: number, end }',
    after: 'if (end > 1) previous = { segment: number, end }',
    why: 'A frame has more than one byte.',
  },
  {
    file: 'src/ledger/journal/journal.ts',
    before: 'if (segment && segment.end > 0) return { segment: segment.number, offset: segment.end }',
    after: 'if (segment && segment.end > 1) return { segment: segment.number, offset: segment.end }',
    why: 'A frame has more than one byte.',
  },
  {
    file: 'src/ledger/journal/journal.ts',
    within: 'failed',
    before: 'if (isClosed) return',
    after: ';',
    why: 'Only saves a timer, which would find that the journal is closed.',
  },
  {
    file: 'src/ledger/recovery.ts',
    before: "const [first] = text === undefined ? [] : recordsIn(text.split('\\n', 1)[0] ?? '')",
    after: "const [first] = text === undefined ? [] : recordsIn(text.split('\\n', 2)[0] ?? '')",
    why: 'Only the first line is used.',
  },
  {
    file: 'src/ledger/recovery.ts',
    before: "const [first] = text === undefined ? [] : recordsIn(text.split('\\n', 1)[0] ?? '')",
    after: "const [first] = text === undefined ? [] : recordsIn(text.split('\\n', 1)[0] ?? 'x')",
    why: 'Every text has a first line.',
  },
  {
    file: 'src/ledger/journal/journal.ts',
    before: 'clearTimeout(retry)',
    after: ';',
    why: 'The timer of a closed journal does nothing. It would only keep the process for a quarter of a second.',
  },
]
