// node scripts/plant-faults.mjs [--only NAME …] [--quick] [--list] [--json]
//
// Plants the faults of test/faults, one at a time, in a copy of the working tree, and runs the tests. A fault is caught
// when a test fails. It runs the tests that the fault names first; only if they pass, all others (--quick skips those).
// Exits with 1 if a fault survives, if a test hangs instead of failing, or if the text of a fault is no longer in the
// source.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { root } from './bootstrap.mjs'
import { copyOfTree, endRunningTests, firstFailure, isTimeout, testFilesOfNpmTest } from './test-runs.mjs'

const NAMED_MS_MAX = 300_000
const OTHERS_MS_MAX = 1_800_000

const { values: options, positionals } = parseArgs({
  options: {
    only: { type: 'boolean' },
    quick: { type: 'boolean' },
    list: { type: 'boolean' },
    json: { type: 'boolean' },
  },
  allowPositionals: true,
})
const faults = chosenFaults(await allFaults())

if (options.list) {
  for (const fault of faults) {
    const note = isStale(fault) ? '  STALE' : ''
    console.log(`${fault.name}  ${fault.file}  (${fault.tests.join(', ')})${note}`)
  }
  process.exit(faults.some(isStale) ? 1 : 0)
}

const copy = copyOfTree()
process.on('exit', endRunningTests)
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130))

await requirePassing([...new Set(faults.filter((fault) => !isStale(fault)).flatMap(({ tests }) => tests))])
const results = []
for (const fault of faults) {
  const result = await tryFault(fault)
  results.push(result)
  if (!options.json) console.log(`${result.outcome.padEnd(8)} ${fault.name.padEnd(44)} ${result.by ?? ''}`)
}
const of = (outcome) => results.filter((result) => result.outcome === outcome)
if (options.json) console.log(JSON.stringify(results, null, 2))
else {
  console.log(
    `\n${faults.length} faults: ${['caught', 'survived', 'hung', 'stale'].map((it) => `${of(it).length} ${it}`).join(', ')}.`,
  )
  for (const { name, file } of of('survived')) console.log(`  survived: ${name} in ${file}`)
  for (const { name, by } of of('hung')) console.log(`  hung: ${name}, ${by}`)
  for (const { name, file } of of('stale')) console.log(`  stale: ${name}, whose text does not occur once in ${file}`)
}
process.exit(of('caught').length === faults.length ? 0 : 1)

/** The faults of every file in test/faults, in the order of the files. */
async function allFaults() {
  const folder = join(root, 'test', 'faults')
  const files = readdirSync(folder).filter((file) => file.endsWith('.mjs'))
  const lists = await Promise.all(files.sort().map(async (file) => (await import(join(folder, file))).default))
  const all = lists.flat().map((fault) => ({ ...fault, tests: fault.tests.map(testFile) }))
  const names = all.map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice) throw new Error(`two faults are named ${twice}`)
  return all
}

/** Tests are named from test/, or from packages/. */
function testFile(name) {
  return `${name.startsWith('packages/') ? '' : 'test/'}${name}.test.ts`
}

function chosenFaults(all) {
  if (!options.only) return all
  const unknown = positionals.find((name) => !all.some((fault) => fault.name === name))
  if (unknown) throw new Error(`there is no fault named ${unknown}`)
  return all.filter(({ name }) => positionals.includes(name))
}

/** The text must occur exactly once, so that it is clear what breaks, and the tests must exist. */
function isStale({ file, find, tests }) {
  const source = join(root, file)
  if (!existsSync(source) || !tests.every((test) => existsSync(join(root, test)))) return true
  return readFileSync(source, 'utf8').split(find).length !== 2
}

/** A test that fails without any fault would seem to catch everything. */
async function requirePassing(tests) {
  if (tests.length === 0) return
  const failure = await firstFailure(copy, tests, { msMax: OTHERS_MS_MAX })
  if (!failure) return
  console.log(`This test fails without any fault: ${failure}`)
  process.exit(1)
}

async function tryFault({ name, file, find, replace, tests }) {
  const started = Date.now()
  const path = join(copy.tree, file)
  const end = (outcome, by) => ({ name, file, outcome, by, seconds: Math.round((Date.now() - started) / 1000) })
  if (isStale({ file, find, tests })) return end('stale')
  const text = readFileSync(path, 'utf8')
  writeFileSync(
    path,
    text.replace(find, () => replace),
  )
  try {
    let failure = await firstFailure(copy, tests, { msMax: NAMED_MS_MAX })
    if (!options.quick) failure ??= await firstFailure(copy, otherTests(tests), { msMax: OTHERS_MS_MAX })
    if (!failure) return end('survived')
    return end(isTimeout(failure) ? 'hung' : 'caught', failure)
  } finally {
    writeFileSync(path, text)
  }
}

/** What `npm test` runs, without these. */
function otherTests(tests) {
  return testFilesOfNpmTest().filter((file) => !tests.includes(file))
}
