import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { root } from './bootstrap.mjs'
import { hashOf, readMap, updateMap } from './coverage-map.mjs'
import { mutantsOf, mutatedText, sourceFiles } from './mutants.mjs'
import {
  copyOfTree,
  endRunningTests,
  firstFailure,
  isTimeout,
  isUnitTest,
  REFERENCES,
  testFilesOfNpmTest,
} from './test-runs.mjs'

const SCORE_MIN = 85
/** A mutant that makes two tests hang would make most of them hang. */
const HANGS_MAX = 2
const HELP = `node scripts/mutate.mjs [OPTION …]

Changes the sources a little, one place at a time, in copies of the working tree, and runs the tests that reach the
place. A mutant is killed when a test fails. Mutants that the type checker or the linter refuses are not tried.

  --folder FOLDER …    below src/ or packages/; each gets a row of its own (default: every one)
  --file FILE …        only these source files
  --kind KIND …        only changes of this kind: release (a call that ends something is missing), order (two statements
                       are swapped, of which one waits), limit (a constant of a module, a bound, a header), block,
                       statement, property, await, condition, constant, operator, operand, method, arguments, sql
                       or lua
  --sample N           at most N mutants for each folder (default: 30; 0 means all)
  --seed N             chooses another sample (default: 1)
  --jobs N             tests at the same time, each in a copy of its own (default: the number of cores)
  --test-seconds N     for each mutant, leave out tests beyond this sum of their usual seconds (default: 120)
  --minutes N          start no mutant after this time; 0 only reports what is known
  --only ID …          only these mutants
  --tests PATH …       measure and run only test files whose path starts like this, such as test/ledger
  --unit               measure and run only tests that start no service
  --list               show the mutants and how many tests reach them, and run nothing
  --map                only measure which tests reach what
  --as-measured        do not measure tests that are new or changed; they kill none
  --cache FOLDER       what is kept between runs (default: node_modules/.cache/weir-mutants)
  --again              forget earlier results
  --json               the results as JSON, with every mutant

The first run measures which tests reach what, which takes as long as all tests. Later runs measure only test files that
have changed. The folder given by --cache holds that map and the results: an interrupted run goes on where it stopped,
and a mutant that survived meets only tests that are new or changed. To run elsewhere, take along the tree, node_modules
and that folder; nothing is fetched. A test that fails there without any mutant (no PostgreSQL, no Redis) kills none;
the others of its file do.

  killed      a test fails
  survived    every test that reaches it passes (or the first ones do, up to --test-seconds)
  hung        a test took four times its usual time and another minute without an end, and no other test failed
  equivalent  named in test/faults/equivalent: behaves the same, or differs only where no test should care

The score is (killed + hung) / (mutants - equivalent), since a run that never ends is noticed. The exit code is 1 if it
is below ${SCORE_MIN} % in any folder.
`

const { values: options } = parseArgs({
  options: {
    folder: { type: 'string', multiple: true },
    file: { type: 'string', multiple: true },
    kind: { type: 'string', multiple: true },
    sample: { type: 'string', default: '30' },
    seed: { type: 'string', default: '1' },
    jobs: { type: 'string', default: String(availableParallelism()) },
    'test-seconds': { type: 'string', default: '120' },
    minutes: { type: 'string', default: 'Infinity' },
    only: { type: 'string', multiple: true },
    tests: { type: 'string', multiple: true, default: [''] },
    unit: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    map: { type: 'boolean', default: false },
    'as-measured': { type: 'boolean', default: false },
    cache: { type: 'string', default: join(root, 'node_modules', '.cache', 'weir-mutants') },
    again: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (options.help) {
  process.stdout.write(HELP)
  process.exit(0)
}
const jobs = Number(options.jobs)
const endOfStarts = Date.now() + Number(options.minutes) * 60_000
const progress = (line) => process.stderr.write(`${line}\n`)

process.on('exit', endRunningTests)
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130))

const tests = testFilesOfNpmTest().filter(
  (file) => options.tests.some((start) => file.startsWith(start)) && (!options.unit || isUnitTest(file)),
)
if (options.map || !(options.list || options['as-measured'])) await updateMap(options.cache, tests, { jobs, progress })
if (options.map) process.exit(0)

const map = readMap(options.cache, tests)
const texts = new Map(sourceFiles().map((file) => [file, readFileSync(join(root, file), 'utf8')]))
const equivalents = await namedEquivalents()
const chosen = chosenMutants()

if (options.list) {
  for (const mutant of chosen) {
    const tests = testsFor(mutant)
    const seconds = Math.round(tests.reduce((sum, test) => sum + test.seconds, 0))
    console.log(`${described(mutant)}\n    ${tests.length} tests, ${seconds} s`)
  }
  process.exit(0)
}

const results = await tryAll(chosen)
report(results)

/** The sample of each folder, by folder, with what the type checker takes. */
function chosenMutants() {
  const wanted = (file) => !options.file || options.file.includes(file)
  const files = [...texts.keys()].filter((file) => wanted(file) && rowOf(file) !== undefined)
  if (files.length === 0) throw new Error('there is no source file to change; see --help')
  const { mutants, compiles, close } = mutantsOf(files, options.seed)
  const sampleMax = options.only ? Infinity : Number(options.sample) || Infinity
  const counts = new Map()
  const taken = []
  for (const mutant of mutants) {
    if (options.kind && !options.kind.includes(mutant.kind)) continue
    const row = rowOf(mutant.file)
    const count = counts.get(row) ?? 0
    if (count >= sampleMax || (options.only && !options.only.includes(mutant.id)) || !compiles(mutant)) continue
    counts.set(row, count + 1)
    taken.push({ ...mutant, row })
  }
  close()
  return taken
}

/** The folder under which a file is counted. */
function rowOf(file) {
  if (options.folder) return options.folder.find((folder) => file.startsWith(`${folder.replace(/\/$/, '')}/`))
  const [top, first, ...rest] = file.split('/')
  return rest.length > 0 ? `${top}/${first}` : top
}

/** The tests that reach the mutant: first those that import its file, then the quick ones. */
function testsFor(mutant) {
  const isScript = mutant.file.endsWith('.lua')
  const mentions = (test) => (isScript ? readsScript(test, mutant.file) : textOf(test).includes(`/${mutant.file}'`))
  const tests = reachingTests(mutant).map(({ test, hash, seconds, skipped }) => ({
    test,
    hash,
    seconds,
    skipped,
    isDirect: mentions(test) || (test === REFERENCES && mutant.top !== undefined),
  }))
  return tests.sort((a, b) => Number(b.isDirect) - Number(a.isDirect) || a.seconds - b.seconds)
}

function textOf(test) {
  return readFileSync(join(root, test), 'utf8')
}

/** Whether a test runs a script by itself: `lua('workspaces/rate-limits', 'take')`. */
function readsScript(test, file) {
  const text = textOf(test)
  const folder = dirname(file).replace('src/', '')
  return text.includes('luaBeside') && text.includes(`'${folder}', '${basename(file, '.lua')}'`)
}

function reachingTests({ file, start, top }) {
  if (file.endsWith('.lua')) {
    const readers = map.records.filter(({ test }) => readsScript(test, file))
    return unique([...readers, ...usersOfScript(file).flatMap((user) => map.calling(user))])
  }
  if (top === undefined) return map.reaching(file, texts.get(file), start)
  const users = usesOf(top, file)
  if (users.length === 0) return map.calling(file).length > 0 ? map.calling(file) : map.loading(file)
  const readers = map.loading(file).filter(({ test }) => test === REFERENCES || textOf(test).includes(`/${file}'`))
  return unique([...readers, ...users.flatMap((use) => map.reaching(use.file, texts.get(use.file), use.offset))])
}

/** Where a constant of a module is used. It has its value when the module is loaded, but no test sees it there. */
function usesOf(name, file) {
  const imports = new RegExp(`import [^;]*?\\b${name}\\b[^;]*?/${basename(file)}'`)
  return [...texts].flatMap(([user, text]) => {
    if (user !== file && !imports.test(text)) return []
    const uses = [...text.matchAll(new RegExp(`\\b${name}\\b`, 'g'))].map(({ index }) => index)
    const isUse = (offset) => {
      const line = text.slice(text.lastIndexOf('\n', offset) + 1, text.indexOf('\n', offset))
      return !/^(import|export|const|\} from|\s*\*|\s*\/\/)/.test(line)
    }
    return uses.filter(isUse).map((offset) => ({ file: user, offset }))
  })
}

/** The files beside a script that name it, or all of them if it is part of another script. */
function usersOfScript(file) {
  const beside = [...texts.keys()].filter((it) => it.endsWith('.ts') && dirname(it) === dirname(file))
  const name = basename(file, '.lua')
  const naming = beside.filter((it) => new RegExp(`\\b${name}(\\.lua)?'`).test(texts.get(it)))
  return naming.length > 0 ? naming : beside
}

function unique(records) {
  return [...new Set(records)]
}

async function namedEquivalents() {
  const folder = join(root, 'test', 'faults', 'equivalent')
  const lists = await Promise.all(readdirSync(folder).map(async (file) => (await import(join(folder, file))).default))
  const all = lists.flat()
  for (const { file, before } of all) {
    const compact = texts.get(file)?.replaceAll(/\s+/g, ' ')
    if (!compact?.includes(before))
      throw new Error(`test/faults/equivalent names what is no longer in ${file}: ${before}`)
  }
  return all
}

function equivalentOf(mutant) {
  return equivalents.find(
    ({ file, within, before, after }) =>
      file === mutant.file &&
      before === mutant.before &&
      after === mutant.after &&
      (within === undefined || within === mutant.within),
  )
}

async function tryAll(mutants) {
  const resultsFile = join(options.cache, 'results.jsonl')
  mkdirSync(options.cache, { recursive: true })
  if (options.again) rmSync(resultsFile, { force: true })
  const earlier = new Map(readLines(resultsFile).map((result) => [result.id, result]))
  const outcomes = []
  const waiting = []
  for (const mutant of mutants) {
    const equivalent = equivalentOf(mutant)
    const version = hashOf(texts.get(mutant.file))
    const known = earlier.get(mutant.id)?.version === version ? earlier.get(mutant.id) : undefined
    if (equivalent) outcomes.push({ ...mutant, outcome: 'equivalent', by: equivalent.why })
    else waiting.push({ mutant, version, known })
  }
  const clean = new Map()
  const total = waiting.length
  let done = 0
  const work = async () => {
    let copy
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const { mutant, version, known } = next
      const tests = untried(testsFor(mutant), known)
      if (known && tests.length === 0) {
        outcomes.push({ ...mutant, ...known })
        done += 1
        continue
      }
      if (Date.now() > endOfStarts) {
        if (known) outcomes.push({ ...mutant, ...known })
        continue
      }
      copy ??= copyOfTree()
      const outcome = await tryMutant(copy, mutant, tests, clean)
      const tried = { ...known?.tried, ...outcome.tried }
      const result = { id: mutant.id, version, ...outcome, tried }
      appendFileSync(resultsFile, `${JSON.stringify(result)}\n`)
      outcomes.push({ ...mutant, ...result })
      done += 1
      progress(
        `${done}/${total}  ${outcome.outcome.padEnd(8)} ${outcome.seconds} s  ${described(mutant)}  ${outcome.by ?? ''}`,
      )
    }
    copy?.remove()
  }
  await Promise.all(Array.from({ length: jobs }, work))
  if (outcomes.length < mutants.length)
    progress(`${mutants.length - outcomes.length} mutants are left for the next run.`)
  return outcomes
}

function readLines(file) {
  if (!existsSync(file)) return []
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
}

/** The tests that could change what is known, up to the limit of time: none if the test that killed it is the same. */
function untried(tests, known) {
  if (
    known?.outcome === 'killed' &&
    tests.some(({ test, hash }) => test === known.killer && known.tried[test] === hash)
  )
    return []
  let seconds = 0
  const within = tests.filter((test) => {
    seconds += test.seconds
    return seconds <= Number(options['test-seconds']) || test.isDirect
  })
  return within.filter(({ test, hash }) => known?.tried[test] !== hash)
}

async function tryMutant(copy, mutant, tests, clean) {
  const started = Date.now()
  const path = join(copy.tree, mutant.file)
  const text = readFileSync(path, 'utf8')
  const tried = {}
  const hangs = []
  const end = (outcome, by, killer) => ({
    outcome,
    by,
    killer,
    tried,
    seconds: Math.round((Date.now() - started) / 1000),
  })
  for (const it of tests) {
    const { test, hash } = it
    writeFileSync(path, mutatedText(text, mutant))
    const failure = await run(copy, it)
    writeFileSync(path, text)
    if (failure) {
      // A test that fails without the mutant too says nothing about it.
      if (!clean.has(test)) clean.set(test, run(copy, it))
      if ((await clean.get(test)) !== undefined) continue
    }
    tried[test] = hash
    if (failure && !isTimeout(failure)) return end('killed', failure, test)
    if (failure) hangs.push(failure)
    if (hangs.length === HANGS_MAX) break
  }
  if (tests.length === 0) return end('survived', 'no test reaches it')
  return hangs.length > 0 ? end('hung', hangs[0]) : end('survived')
}

function run(copy, { test, seconds, skipped }) {
  return firstFailure(copy, [test], { msMax: 60_000 + 4000 * seconds, skipped })
}

function described({ id, kind, file, line, within, before, after }) {
  const short = (text) => (text.length > 140 ? `${text.slice(0, 140)} …` : text)
  return `${id} ${kind} ${file}:${line} ${within ? `in ${within}` : ''}\n    ${short(before)}\n  → ${short(after)}`
}

function report(all) {
  const rows = [...new Set(all.map(({ row }) => row))].sort().map((folder) => {
    const mutants = all.filter(({ row }) => row === folder)
    const count = (outcome) => mutants.filter((it) => it.outcome === outcome).length
    const [killed, survived, hung, equivalent] = ['killed', 'survived', 'hung', 'equivalent'].map(count)
    const counted = mutants.length - equivalent
    const score = counted === 0 ? 100 : Math.round(((killed + hung) / counted) * 1000) / 10
    return { folder, mutants: mutants.length, killed, survived, hung, equivalent, score }
  })
  if (options.json) console.log(JSON.stringify({ seed: options.seed, rows, mutants: all }, null, 2))
  else {
    for (const mutant of all.filter(({ outcome }) => outcome === 'survived' || outcome === 'hung')) {
      console.log(`${mutant.outcome} ${described(mutant)}${mutant.by ? `\n    ${mutant.by}` : ''}\n`)
    }
    const columns = ['folder', 'mutants', 'killed', 'survived', 'hung', 'equivalent', 'score']
    const line = (cells) =>
      cells.map((cell, index) => (index === 0 ? String(cell).padEnd(24) : String(cell).padStart(11))).join('')
    console.log(line(columns))
    for (const row of rows) console.log(line(columns.map((column) => row[column])))
  }
  process.exitCode = rows.every(({ score }) => score >= SCORE_MIN) ? 0 : 1
}
