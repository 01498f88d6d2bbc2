export default [
  {
    file: 'src/server/files/local.ts',
    before: 'found.push({ name, bytes: size, writtenAt: mtimeMs })',
    after: 'found.unshift({ name, bytes: size, writtenAt: mtimeMs })',
    why: 'They are sorted by time next.',
  },
  {
    file: 'src/server/files/file-name.ts',
    before:
      "return Object.keys(extensions).find((type) => extensions[type] === extension) ?? 'application/octet-stream'",
    after:
      "return Object.keys(extensions).findLast((type) => extensions[type] === extension) ?? 'application/octet-stream'",
    why: 'No two types have the same extension.',
  },
]
