// What runs before anything is installed: plain JavaScript for any Node from 20 on, with nothing imported.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** Where it cannot be written, it is done without. */
const runtimeEnvironment = { NODE_COMPILE_CACHE: join(root, 'node_modules', '.cache', 'weir'), ...process.env }

const readJson = (file) => JSON.parse(readFileSync(file, 'utf8'))

/** Installs the pinned dependencies unless they are there. Nothing of theirs is run. */
export function ensureInstalled({ development }) {
  const { dependencies, devDependencies } = readJson(join(root, 'package.json'))
  const wanted = Object.entries({ ...dependencies, ...(development ? devDependencies : {}) })
  const isThere = ([name, version]) => {
    const file = join(root, 'node_modules', name, 'package.json')
    // An older major beside the current one stands there under another name, as `npm:NAME@VERSION`.
    return existsSync(file) && readJson(file).version === version.split('@').at(-1)
  }
  if (wanted.every(isThere) && (pinnedNode() !== undefined || !hasPinnedNode())) return
  process.stderr.write('Installing dependencies (once) …\n')
  // Not `npm ci`: the lock holds the optional packages of the platforms we pin, and `ci` wants those of all.
  const flags = ['--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  const { status } = spawnSync('npm', ['install', ...flags, ...(development ? [] : ['--omit=dev'])], {
    cwd: root,
    stdio: ['ignore', 2, 2],
  })
  if (status !== 0) {
    process.stderr.write('npm could not install the dependencies; see its messages above.\n')
    process.exit(1)
  }
  spawnSync(runtime(), [join(root, 'scripts', 'compile.mjs')], {
    env: runtimeEnvironment,
    stdio: 'ignore',
    timeout: 60_000,
  })
}

/** The platforms whose Node comes as a package; elsewhere the user's own has to be new enough. */
function hasPinnedNode() {
  return process.platform === 'linux' && (process.arch === 'x64' || process.arch === 'arm64')
}

function pinnedNode() {
  const file = join(root, 'node_modules', `node-linux-${process.arch}`, 'bin', 'node')
  return existsSync(file) ? file : undefined
}

/** The Node that runs Weir. */
export function runtime() {
  const pinned = pinnedNode()
  if (pinned) return pinned
  if (Number(process.versions.node.split('.')[0]) >= 24) return process.execPath
  process.stderr.write(`Weir needs Node 24 or later on this platform; this is ${process.version}.\n`)
  return process.exit(1)
}

/**
 * A small young space: a burst of 10,000 waiting requests takes less memory, and large answers on their way through are let go of
 * before V8 would look through all of its heap for them.
 */
export const runtimeFlags = ['--max-semi-space-size=8']

/** Whether this very process is that Node. */
export function isRuntime() {
  return realpathSync(process.execPath) === realpathSync(runtime())
}

/**
 * Runs the right Node with this process's terminal and ends as it ends: in this process's place where that can be, else
 * beside it.
 */
export function runAndExit(args) {
  const node = runtime()
  const flags = [...runtimeFlags, ...process.execArgv]
  const canReplace = process.platform !== 'win32' && Number(process.versions.node.split('.')[0]) >= 24
  if (canReplace) process.execve(node, [node, ...flags, ...args], runtimeEnvironment)
  const child = spawn(node, [...flags, ...args], { stdio: 'inherit', env: runtimeEnvironment })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('exit', (code, signal) => process.exit(signal ? 1 : (code ?? 1)))
}
