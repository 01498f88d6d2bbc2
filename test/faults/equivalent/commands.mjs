export default [
  {
    file: 'src/commands/doctor-engine-recognition.ts',
    before: "version: withFields('version', 'model_id', 'max_client_batch_size'),",
    after: "version: withFields('version', 'max_client_batch_size', 'model_id'),",
    why: 'All of these fields must be there, in any order.',
  },
  {
    file: 'src/commands/doctor-engine-entry.ts',
    before: "return `${notes.join('\\n')}\\n${stringify({ models: [entry] }, { lineWidth: 0 })}`",
    after: "return `${notes.join('\\n')}\\n${stringify({ models: [entry] }, { })}`",
    why: 'A long text that is folded means the same.',
  },
]
