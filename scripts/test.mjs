// npm test [-- FILE …]: installs what is missing, checks types, lint and format, and runs the tests.
// npm run test:models: tests the embedded engine's models through the API, with their real weights.
// npm run test:browser [-- FILE …]: tests every page of the consoles in a browser. npm test runs only their short form.
// npm run test:chaos: kills, stops and cuts off replicas and their Redis, again and again. npm test runs a short form.
// npm run test:slow [-- FILE …]: runs the tests that take minutes, and those of npm test that can run for longer.
// npm run test:agents: runs real coding agents against the service (npm run install:agents).
// npm run test:engines: compares calls through Weir with the same calls to real inference servers (npm run install:engines).
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root, runOnRuntime, runtime } from './bootstrap.mjs'
import { ensureConsole } from './build-console.mjs'
import { separateTests, slowTestFiles, testFiles, testFilesOfNpmTest, testsTogether } from './test-runs.mjs'

// Half of what most test files cost is loading the same modules. The folder is new, because tests load copies of modules
// from temporary folders too, which would make a lasting one grow.
const temporary = mkdtempSync(join(tmpdir(), 'weir-tests-'))
process.on('exit', () => rmSync(temporary, { recursive: true, force: true }))

const tool = (name) => join(root, 'node_modules', '.bin', name)
const args = process.argv.slice(2)
const chosen = separateTests[args[0]]

const isSlow = args[0] === '--slow'
const environment = {
  ...process.env,
  NODE_COMPILE_CACHE: join(temporary, 'compiled'),
  ...(isSlow ? { WEIR_LONG_RUN: '1' } : {}),
}

await runOnRuntime(import.meta.url, () => {
  ensureTools([
    'curl',
    'chromium',
    'redis-server',
    'postgresql',
    'prometheus',
    ...(isSlow ? ['nginx', 'caddy', 'haproxy'] : []),
  ])
  ensureConsole()
  const [, ...named] = args
  // The soak takes an hour.
  if (isSlow) runTests('slow tests', named.length > 0 ? named : slowTestFiles(), 2, 120)
  else if (chosen) runSeparateTests(named)
  else if (args.length > 0) runTests('tests', args, 2)
  else runAllChecks()
})

function runSeparateTests(named) {
  const files = named.length > 0 ? named : testFiles(chosen.folder)
  runTests(chosen.folder, files, chosen.concurrency, chosen.fileMinutes)
}

function runAllChecks() {
  step('types', tool('tsc'), ['--noEmit', '--checkers', '2', ...rememberedIn('types')])
  step('types of the consoles', tool('tsc'), ['--noEmit', '-p', 'console', ...rememberedIn('console-types')])
  step('lint', tool('oxlint'), ['--type-aware', '--deny-warnings'])
  step('format', tool('oxfmt'), ['--check'])
  step('spec', runtime(), [join(root, 'scripts', 'spec.mjs'), '--quiet'])
  // A process writes what it compiled when it ends, so the first ones would each compile everything.
  spawnSync(runtime(), [join(root, 'scripts', 'compile.mjs')], { stdio: 'ignore', env: environment })
  runTests(
    'tests',
    testsTogether(testFilesOfNpmTest(), temporary),
    // More than the two cores we can count on, because many tests mostly wait for clients to retry.
    5,
    // For two dozen files on a busy machine.
    30,
  )
}

/** Lets the type checker keep what it found. Checking again takes a sixth of the time if little has changed. */
function rememberedIn(name) {
  return ['--incremental', '--tsBuildInfoFile', join(root, 'node_modules', '.cache', `${name}.tsbuildinfo`)]
}

/** Installs programs that the tests run. Debian's packages have the same names. */
function ensureTools(names) {
  const missing = names.filter((name) => !isInstalled(name))
  if (missing.length === 0) return
  process.stdout.write(`Installing ${missing.join(', ')} …\n`)
  spawnSync('apt-get', ['update', '-q'], { stdio: 'ignore' })
  const { status } = spawnSync('apt-get', ['install', '-y', '-q', ...missing], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if (status === 0) return
  process.stdout.write(`The tests need ${missing.join(' and ')}. Install it and try again.\n`)
  process.exit(1)
}

/** Debian keeps the programs of PostgreSQL outside the path. */
function isInstalled(name) {
  if (name === 'postgresql' && existsSync('/usr/lib/postgresql')) return true
  return spawnSync(name === 'postgresql' ? 'postgres' : name, ['--version']).error === undefined
}

function runTests(name, files, concurrency, fileMinutes = 10) {
  const timeout = `--test-timeout=${fileMinutes * 60_000}`
  step(name, runtime(), ['--test', timeout, `--test-concurrency=${concurrency}`, ...files])
}

function step(name, command, args) {
  process.stdout.write(`\n▶ ${name}\n`)
  const started = Date.now()
  const { status } = spawnSync(command, args, { cwd: root, stdio: 'inherit', env: environment })
  if (status !== 0) {
    process.stdout.write(`✖ ${name} failed\n`)
    process.exit(status ?? 1)
  }
  process.stdout.write(`✔ ${name} (${((Date.now() - started) / 1000).toFixed(1)} s)\n`)
}
