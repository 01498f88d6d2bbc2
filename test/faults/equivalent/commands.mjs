export default [
  {
    file: 'src/workspaces/accounts.ts',
    before: 'const found = await store.keys({ ...query, before, limit: limit + 1 })',
    after: 'const found = await store.keys({ ...query, before, limit: limit + 2 })',
    why: 'Only reads one row more.',
  },
  {
    file: 'src/operate/doctor/doctor-engine-recognition.ts',
    before: "version: withFields('version', 'model_id', 'max_client_batch_size'),",
    after: "version: withFields('version', 'max_client_batch_size', 'model_id'),",
    why: 'All of these fields must be there, in any order.',
  },
  {
    file: 'src/operate/doctor/doctor-engine-entry.ts',
    before: "return `${notes.join('\\n')}\\n${stringify({ models: [entry] }, { lineWidth: 0 })}`",
    after: "return `${notes.join('\\n')}\\n${stringify({ models: [entry] }, { })}`",
    why: 'A long text that is folded means the same.',
  },
  {
    file: 'src/cli/command.ts',
    before: 'return message.split(/\\.(?:\\s|$)/, 1)[0] ?? message',
    after: 'return message.split(/\\.(?:\\s|$)/, 2)[0] ?? message',
    why: 'Only the first part is used.',
  },
]
