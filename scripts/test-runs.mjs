// Which tests there are, and runs of them in copies of the working tree. What plant-faults.mjs and mutate.mjs share.
import { spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root, runtime } from './bootstrap.mjs'

/** Folders of test/ with their own command. Tests with real weights use every core, so they run one after another. */
export const separateTests = {
  '--models': { folder: 'models', concurrency: 1 },
  '--browser': { folder: 'browser', concurrency: 1, fileMinutes: 20 },
  '--chaos': { folder: 'chaos', concurrency: 1, fileMinutes: 120 },
  '--engines': { folder: 'real-engines', concurrency: 1, fileMinutes: 30 },
  '--agents': { folder: 'agents', concurrency: 1, fileMinutes: 30 },
}
/** Only npm run test:slow runs these. */
const SLOW_TEST = /\.slow\.test\.ts$/
/** The tests of npm test that can run for longer import this; npm run test:slow runs them so. */
const LONG_RUN = 'support/long-run.ts'
/** The short form of the browser tests, for npm test. */
const shortBrowserTest = join('test', 'browser', 'sign-in.test.ts')

const TIMEOUT = 'timeout after'

/** Every test file, those of packages included, or those of one folder of test/. */
export function testFiles(folder) {
  const folders = folder === undefined ? ['test', join('packages', 'local-models', 'test')] : [join('test', folder)]
  return folders
    .flatMap((it) => readdirSync(join(root, it), { recursive: true }).map((file) => join(it, file)))
    .filter((file) => file.endsWith('.test.ts'))
    .sort()
}

/** Tests of the service on real sockets: NAME.http.test.ts. */
const HTTP_TEST = /\.http\.test\.ts$/

/** Reads the schemas and tables of all modules, without a service, and without a call that a map of the tests could show. */
export const REFERENCES = 'test/references.test.ts'

/** Whether a test file starts no service: it is in a folder of test/ that is a folder of src/ too, or compares the references. */
export function isUnitTest(file) {
  const [, feature, ...rest] = file.split('/')
  return file === REFERENCES || (rest.length > 0 && !HTTP_TEST.test(file) && existsSync(join(root, 'src', feature)))
}

/** The test files that `npm test` runs. */
export function testFilesOfNpmTest() {
  const separate = Object.values(separateTests).map(({ folder }) => join('test', folder, '/'))
  return testFiles().filter(
    (file) =>
      file === shortBrowserTest || !(SLOW_TEST.test(file) || separate.some((folder) => file.startsWith(folder))),
  )
}

/** How many files of a folder share a process in `npm test`: enough to save most of the loading, few enough for an even load. */
const TOGETHER_MAX = 24
/** Of folders whose tests wait for leases to end, or for clients to retry. */
const WAITING_TOGETHER_MAX = 4
const WAITING = new Set(['clients', 'replicas'])
/** Not in a process with others, because of what they do to their own: they replace globals, or measure the whole process. */
const ALONE = /globalThis\.\w+ = |process\.on\('worker'|process\.memoryUsage/
/** Not in a process with a service or with calls of it: a timer of fetch that is set while timers are mocked never fires. */
const MOCKS_TIMERS = /mock\.timers|hand-clock/
const SHARED_STAGE = join('test', 'support', 'shared-stage.ts')

/**
 * The files for the test runner, which starts a process for each. Loading the service costs most tests more than they do
 * themselves, so the tests of a folder share processes: files written to `folder`, in which each test file is a suite.
 */
export function testsTogether(files, folder) {
  const groups = Map.groupBy(files, (file) => {
    const [top, second] = file.split('/')
    const text = readFileSync(join(root, file), 'utf8')
    const mocksTimers = MOCKS_TIMERS.test(text)
    if (ALONE.test(text) || (mocksTimers && HTTP_TEST.test(file))) return 'alone'
    if (mocksTimers) return 'mocked-timers'
    if (top === 'packages') return top
    return second.endsWith('.test.ts') ? 'repository' : second
  })
  const alone = groups.get('alone') ?? []
  groups.delete('alone')
  const together = [...groups].flatMap(([name, ofGroup]) => {
    const processes = Math.ceil(ofGroup.length / (WAITING.has(name) ? WAITING_TOGETHER_MAX : TOGETHER_MAX))
    return Array.from({ length: processes }, (_, index) => {
      const path = join(folder, `${name}-${index + 1}.test.mjs`)
      writeFileSync(path, suitesOf(ofGroup.filter((_, place) => place % processes === index)))
      return path
    })
  })
  return [...together, ...alone]
}

/** The shared stage is imported first, outside every suite, so that its service lasts for all of them. */
function suitesOf(files) {
  const address = (file) => JSON.stringify(pathToFileURL(join(root, file)).href)
  return [
    `import { describe } from 'node:test'`,
    ...(files.some((file) => HTTP_TEST.test(file)) ? [`import ${address(SHARED_STAGE)}`] : []),
    ...files.map((file) => `describe(${JSON.stringify(file)}, async () => void (await import(${address(file)})))`),
    '',
  ].join('\n')
}

/** The test files of `npm run test:slow`: its own, and those of `npm test` that have longer runs. */
export function slowTestFiles() {
  return [
    ...testFiles().filter((file) => SLOW_TEST.test(file)),
    ...testFilesOfNpmTest().filter((file) => readFileSync(join(root, file), 'utf8').includes(LONG_RUN)),
  ]
}

/**
 * Copies tracked files and new ones, without what git ignores. The dependencies are only linked.
 * `tree` is the copy, `temporary` the folder for what its tests write, `remove` deletes both.
 */
export function copyOfTree() {
  const folder = mkdtempSync(join(tmpdir(), 'weir-'))
  // PostgreSQL does not run as root, and has its folder under this one.
  chmodSync(folder, 0o755)
  const tree = join(folder, 'tree')
  for (const file of filesOfTree()) {
    mkdirSync(dirname(join(tree, file)), { recursive: true })
    cpSync(join(root, file), join(tree, file), { recursive: true, verbatimSymlinks: true, force: true })
  }
  const modules = join(tree, 'node_modules')
  rmSync(modules, { recursive: true, force: true })
  symlinkSync(join(root, 'node_modules'), modules)
  const temporary = join(folder, 't')
  mkdirSync(temporary)
  const remove = () => removeQuietly(folder)
  process.on('exit', remove)
  return { tree, temporary, remove }
}

/** A process that is about to end may still write there. What stays is left in the system's temporary folder. */
function removeQuietly(folder) {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  } catch {
    // See above.
  }
}

/** Where there is no git repository, what a repository would ignore is left out by name. */
function filesOfTree() {
  const { status, stdout } = spawnSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
  })
  // Git still lists a file that was deleted without a commit.
  if (status === 0)
    return stdout
      .toString()
      .split('\0')
      .filter((file) => file !== '' && existsSync(join(root, file)))
  return readdirSync(root).filter((name) => !['node_modules', 'data', '.git', 'weir.yaml', '.env'].includes(name))
}

/** Ends the tests that are running now, with everything that they have started. */
const running = new Set()
export function endRunningTests() {
  for (const end of running) end()
}

/**
 * Runs the tests until one fails, and names it; undefined if all pass. A single file runs without a process of the
 * test runner around it. `skipped`: titles of tests that are left out.
 */
export function firstFailure({ tree, temporary }, tests, { msMax, environment = {}, skipped = [] }) {
  return new Promise((resolve) => {
    // A fresh folder each time: what an earlier run left there may still be written to.
    const temporaryHere = mkdtempSync(join(temporary, 't'))
    chmodSync(temporaryHere, 0o755)
    // A test that waits in vain fails by itself, as it does in `npm test`. One that never lets go of the thread does not.
    const runner = tests.length === 1 ? [`--test-timeout=${msMax * 0.75}`] : ['--test', '--test-concurrency=2']
    // A process group of its own, so that whatever the tests start ends with them.
    const skips = skipped.map((title) => `--test-skip-pattern=${RegExp.escape(title)}`)
    const child = spawn(runtime(), [...runner, ...skips, '--test-reporter=tap', ...tests], {
      cwd: tree,
      env: { ...process.env, TMPDIR: temporaryHere, NODE_TEST_CONTEXT: undefined, ...environment },
      detached: true,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    let output = ''
    let failure
    const end = () => {
      try {
        if (child.pid) process.kill(-child.pid, 'SIGKILL')
      } catch {
        // They have ended by themselves.
      }
    }
    running.add(end)
    const stop = (reason) => {
      failure ??= reason
      end()
    }
    const timer = setTimeout(() => stop(`${TIMEOUT} ${msMax / 1000} s in ${tests.join(', ')}`), msMax)
    child.stdout.setEncoding('utf8').on('data', (piece) => {
      output += piece
      const failed = /^ *not ok \d+ - (?!.*# (?:TODO|SKIP))(.*)\n[^]*?location: '.*\/tree\/(.*?):/m.exec(output)
      if (failed) stop(`${failed[2]} "${failed[1]}"`)
    })
    child.on('close', (code) => {
      clearTimeout(timer)
      running.delete(end)
      endStragglers(temporaryHere)
      removeQuietly(temporaryHere)
      stop(code === 0 ? undefined : `exit code ${code} in ${tests.join(', ')}`)
      resolve(failure)
    })
  })
}

/** Ends what a test that was killed has left in a session of its own, such as a terminal. It has the test's folder. */
function endStragglers(temporary) {
  if (process.platform !== 'linux') return
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const variables = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')
      if (variables.includes(`TMPDIR=${temporary}`)) process.kill(Number(pid), 'SIGKILL')
    } catch {
      // It has ended, or belongs to another user.
    }
  }
}

/** The title of the test that failed; undefined if the file failed as a whole. */
export function failedTitle(failure) {
  return /"(.*)"$/.exec(failure)?.[1]?.replaceAll(/\\(.)/g, '$1')
}

/** True if the tests ran past their limit instead of failing. */
export function isTimeout(failure) {
  return failure.startsWith(TIMEOUT)
}
