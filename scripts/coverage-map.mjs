// Which tests run which part of which source file. mutate.mjs runs only the tests that reach a mutant.
//
// Each test file has a record of its own in the folder of the map, so that an interrupted run goes on where it stopped
// and a changed test is measured alone. Sources are kept as they were measured: a line that has moved since is still
// found by its text.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root } from './bootstrap.mjs'
import { copyOfTree, failedTitle, firstFailure, isUnitTest } from './test-runs.mjs'

const TEST_MS_MAX = 600_000
/** A file with more tests that fail without any mutant is left out. */
const SKIPPED_MAX = 5

export const hashOf = (text) => createHash('sha256').update(text).digest('hex').slice(0, 16)
const hashOfFile = (file) => hashOf(readFileSync(join(root, file)))

/** Measures the test files that are new, have changed, or failed, several at a time. */
export async function updateMap(folder, tests, { jobs, progress }) {
  mkdirSync(join(folder, 'tests'), { recursive: true })
  mkdirSync(join(folder, 'sources'), { recursive: true })
  const stale = tests.filter((test) => {
    const record = recordOf(folder, test)
    // A test that failed may have done so because the machine was busy.
    return record?.hash !== hashOfFile(test) || record.failure !== undefined || record.skipped?.length > 0
  })
  if (stale.length === 0) return
  // The quick ones first: a part of the map is of use too.
  stale.sort((a, b) => Number(isUnitTest(b)) - Number(isUnitTest(a)))
  const total = stale.length
  const measureAll = async () => {
    const copy = copyOfTree()
    try {
      for (let test = stale.shift(); test; test = stale.shift()) {
        const record = await measured(copy, test, join(folder, 'sources'))
        writeFileSync(recordFile(folder, test), JSON.stringify(record))
        const skipped = record.skipped.length > 0 ? `  without: ${record.skipped.join(', ')}` : ''
        const note = record.failure ? `  fails: ${record.failure}` : skipped
        progress(`measured ${total - stale.length}/${total}  ${record.seconds} s  ${test}${note}`)
      }
    } finally {
      copy.remove()
    }
  }
  await Promise.all(Array.from({ length: Math.min(jobs, total) }, measureAll))
}

const recordFile = (folder, test) => join(folder, 'tests', `${test.replaceAll('/', '+')}.json`)

function recordOf(folder, test) {
  const file = recordFile(folder, test)
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined
}

/** Tests of the file that fail, because something is missing on this machine, are skipped: the others are of use. */
async function measured(copy, test, sourcesFolder) {
  const skipped = []
  for (;;) {
    const record = await measuredWithout(skipped, copy, test, sourcesFolder)
    const title = record.failure && failedTitle(record.failure)
    if (title === undefined || skipped.includes(title) || skipped.length === SKIPPED_MAX) return record
    skipped.push(title)
  }
}

async function measuredWithout(skipped, copy, test, sourcesFolder) {
  const raw = mkdtempSync(join(copy.temporary, 'v8'))
  const started = Date.now()
  const environment = { NODE_V8_COVERAGE: raw }
  const failure = await firstFailure(copy, [test], { msMax: TEST_MS_MAX, environment, skipped })
  const seconds = (Date.now() - started) / 1000
  const scripts = new Map()
  for (const file of readdirSync(raw)) {
    for (const script of scriptsIn(join(raw, file))) {
      const path = sourcePath(script.url, copy.tree)
      if (path) scripts.set(path, [...(scripts.get(path) ?? []), script])
    }
  }
  rmSync(raw, { recursive: true, force: true, maxRetries: 3 })
  const sources = {}
  for (const [path, seen] of scripts) {
    const text = readFileSync(join(copy.tree, path), 'utf8')
    const hash = hashOf(text)
    writeFileSync(join(sourcesFolder, hash), text)
    sources[path] = { hash, ...coverageOf(seen, text.length) }
  }
  return { test, hash: hashOf(readFileSync(join(copy.tree, test))), seconds, failure, skipped: [...skipped], sources }
}

/** A process that was killed may have left half a file. */
function scriptsIn(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8')).result
  } catch {
    return []
  }
}

function sourcePath(url, tree) {
  if (!url.startsWith('file://')) return undefined
  const path = fileURLToPath(url.split('?')[0])
  const file = path.startsWith(tree) ? path.slice(tree.length + 1) : ''
  return /^(src|packages)\/.*\.ts$/.test(file) ? file : undefined
}

/** `covered`: from, to, from, to … of what ran in any of the processes. `called`: whether a function was called. */
function coverageOf(scripts, length) {
  const reached = new Uint8Array(length)
  let called = false
  for (const { functions } of scripts) {
    const here = new Uint8Array(length)
    // Outer ranges come before inner ones, which are more precise.
    const ranges = functions
      .flatMap((it) => it.ranges)
      .sort((a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset)
    for (const { startOffset, endOffset, count } of ranges) here.fill(count > 0 ? 1 : 0, startOffset, endOffset)
    for (let index = 0; index < length; index += 1) reached[index] |= here[index]
    called ||= functions.some(({ functionName, ranges: [whole] }) => functionName !== '' && whole.count > 0)
  }
  const covered = []
  for (let index = 0; index < length; index += 1) {
    if (reached[index] !== (index === 0 ? 0 : reached[index - 1])) covered.push(index)
  }
  if (covered.length % 2 === 1) covered.push(length)
  return { called, covered }
}

/** The map of these tests. Those that fail without any mutant are left out. */
export function readMap(folder, tests) {
  const records = tests.map((test) => recordOf(folder, test)).filter((record) => record && !record.failure)
  const lines = new Map()
  const linesOf = (hash) => {
    if (!lines.has(hash)) lines.set(hash, readFileSync(join(folder, 'sources', hash), 'utf8').split('\n'))
    return lines.get(hash)
  }

  /** The offset in the text that was measured, by the text of the line: the same occurrence of it, or the last. */
  function measuredOffset(hash, text, offset) {
    if (hashOf(text) === hash) return offset
    const before = text.slice(0, offset).split('\n')
    const now = text.split('\n')
    const then = linesOf(hash)
    // A new line counts as reached where the line above it was.
    for (let row = before.length - 1; row >= 0; row -= 1) {
      if (now[row].trim() === '') continue
      const rank = now.slice(0, row).filter((line) => line === now[row]).length
      const rows = then.flatMap((line, index) => (line === now[row] ? [index] : []))
      if (rows.length === 0) continue
      const found = rows[Math.min(rank, rows.length - 1)]
      const column = row === before.length - 1 ? before.at(-1).length : now[row].length - 1
      return then.slice(0, found).reduce((sum, line) => sum + line.length + 1, 0) + column
    }
    return 0
  }

  const isCovered = (covered, offset) => {
    let low = 0
    let high = covered.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (covered[middle] <= offset) low = middle + 1
      else high = middle
    }
    return low % 2 === 1
  }

  return {
    records,
    /** The tests that reach this place. */
    reaching(file, text, offset) {
      const offsets = new Map()
      return records.filter(({ sources }) => {
        const source = sources[file]
        if (!source) return false
        if (!offsets.has(source.hash)) offsets.set(source.hash, measuredOffset(source.hash, text, offset))
        return isCovered(source.covered, offsets.get(source.hash))
      })
    },
    /** The tests that call any function of the file. */
    calling: (file) => records.filter(({ sources }) => sources[file]?.called),
    /** The tests that load the file. */
    loading: (file) => records.filter(({ sources }) => sources[file]),
  }
}
