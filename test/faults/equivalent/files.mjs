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
  {
    file: 'src/local-models/files/model-files.ts',
    before: 'if (free < reservedBytes(size)) end(`The disk of ${directory} is full: ${megabytes(free)} are left.`)',
    after: 'if (free <= reservedBytes(size)) end(`The disk of ${directory} is full: ${megabytes(free)} are left.`)',
    why: 'A byte more or less of a disk that other programs write to, too.',
  },
  {
    file: 'src/server/files/local.ts',
    before: 'return one.length === other.length && timingSafeEqual(one, other)',
    after: 'return one.length === other.length && timingSafeEqual(other, one)',
    why: 'The comparison is symmetric.',
  },
  {
    file: 'src/server/files/local.ts',
    before: 'expired.push(name)',
    after: 'expired.unshift(name)',
    why: 'All of them are deleted, in any order.',
  },
  {
    file: 'src/local-models/files/npm-configuration.ts',
    before: "return { url: `${url}${name}/-/${name.split('/').at(-1) ?? name}-${version}.tgz`, headers }",
    after: "return { url: `${url}${name}/-/${name.split('/').at(1) ?? name}-${version}.tgz`, headers }",
    why: 'The name of a package has one slash or none.',
  },
]
