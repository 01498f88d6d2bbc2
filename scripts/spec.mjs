// npm run spec: lists every statement in docs/statements.json with its tests. Fails if a built one has no test.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './bootstrap.mjs'
import { testFiles } from './test-runs.mjs'

const quiet = process.argv.includes('--quiet')
const statements = JSON.parse(readFileSync(join(root, 'docs', 'statements.json'), 'utf8'))
const titles = new Map(Object.keys(statements).map((id) => [id, []]))
const unknown = new Set()

for (const file of testFiles()) {
  const text = readFileSync(join(root, file), 'utf8')
  for (const [, title] of text.matchAll(/\b(?:it|test|describe)\(\s*(?:'((?:[^'\\]|\\.)*)'|`(?:[^`\\]|\\.)*`)/g)) {
    for (const [, ids] of (title ?? '').matchAll(/\[((?:[A-Z]\d+)(?:, ?[A-Z]\d+)*)\]/g)) {
      for (const id of ids.split(/, ?/)) {
        if (titles.has(id)) titles.get(id).push(`${file}: ${title}`)
        else if (/^[ABCEKLMQRSVX]\d/.test(id)) unknown.add(`${id} in ${file}`)
      }
    }
  }
}

const missing = []
for (const [id, { text, since }] of Object.entries(statements)) {
  const found = titles.get(id)
  if (found.length === 0 && since !== null) missing.push(id)
  if (quiet) continue
  console.log(`${id}  ${text}`)
  if (found.length === 0) console.log(since === null ? '    (not built yet)' : '    NO TEST')
  for (const title of found) console.log(`    ${title}`)
}
const built = Object.values(statements).filter(({ since }) => since !== null).length
console.log(`${built} of ${titles.size} statements are built; ${built - missing.length} of them are tested.`)
if (missing.length > 0) console.log(`Without a test: ${missing.join(', ')}`)
if (unknown.size > 0) console.log(`Unknown ids: ${[...unknown].join('; ')}`)
process.exit(missing.length > 0 || unknown.size > 0 ? 1 : 0)
