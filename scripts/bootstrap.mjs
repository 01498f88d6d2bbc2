// Runs before anything is installed: plain JavaScript for Node 20 or later, without dependencies.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** The compile cache saves memory and start-up time. Node skips it when the directory is not writable. */
export const runtimeEnvironment = { NODE_COMPILE_CACHE: join(root, 'node_modules', '.cache', 'weir'), ...process.env }

const readJson = (file) => JSON.parse(readFileSync(file, 'utf8'))

/** Installs the pinned dependencies if any is missing. Their install scripts do not run. */
export function ensureInstalled({ development }) {
  const { dependencies, devDependencies } = readJson(join(root, 'package.json'))
  const wanted = Object.entries({ ...dependencies, ...(development ? devDependencies : {}) })
  const isInstalled = ([name, version]) => {
    const file = join(root, 'node_modules', name, 'package.json')
    // Older majors are installed under an alias, with a version such as `npm:NAME@VERSION`.
    return existsSync(file) && readJson(file).version === version.split('@').at(-1)
  }
  if (wanted.every(isInstalled) && (pinnedNode() !== undefined || !hasPinnedNode())) return
  process.stderr.write('Installing dependencies (only the first time) …\n')
  // Not `npm ci`: it demands the optional packages of every platform, but the lock file has only those we pin.
  const flags = ['--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  const { status } = spawnSync('npm', ['install', ...flags, ...(development ? [] : ['--omit=dev'])], {
    cwd: root,
    stdio: ['ignore', 2, 2],
  })
  if (status !== 0) {
    process.stderr.write('npm could not install the dependencies. See its messages above.\n')
    process.exit(1)
  }
  spawnSync(runtime(), [join(root, 'scripts', 'compile.mjs')], {
    env: runtimeEnvironment,
    stdio: 'ignore',
    timeout: 60_000,
  })
}

/** True on platforms where Node comes as a package. Elsewhere the user's own Node must be recent enough. */
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
 * The flags of a service. V8 would let its young generation grow further under load; with this limit, the service needs
 * about a quarter less memory then, at the same cost.
 */
export const runtimeFlags = ['--max-semi-space-size=16']

/** Whether this process already runs on that Node. */
export function isRuntime() {
  return realpathSync(process.execPath) === realpathSync(runtime())
}

/**
 * Runs the right Node on this terminal and exits with its status. Replaces this process where the platform supports it;
 * otherwise starts a child process.
 */
export function runAndExit(args, ownFlags = []) {
  const node = runtime()
  const flags = [...ownFlags, ...process.execArgv]
  const canReplace = process.platform !== 'win32' && Number(process.versions.node.split('.')[0]) >= 24
  if (canReplace) process.execve(node, [node, ...flags, ...args], runtimeEnvironment)
  const child = spawn(node, [...flags, ...args], { stdio: 'inherit', env: runtimeEnvironment })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('exit', (code, signal) => process.exit(signal ? 1 : (code ?? 1)))
}
