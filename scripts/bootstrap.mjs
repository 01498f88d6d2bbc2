// Runs before anything is installed: plain JavaScript for Node 20 or later, without dependencies.
import { spawn, spawnSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = dirname(dirname(fileURLToPath(import.meta.url)))

/**
 * The compile cache saves memory and start-up time. Node skips it when the directory is not writable. With one arena, glibc
 * gives back what threads have freed: docs/decisions/2026-11-19-one-malloc-arena.md. What the user has set is kept.
 */
export const runtimeEnvironment = {
  NODE_COMPILE_CACHE: join(root, 'node_modules', '.cache', 'weir'),
  MALLOC_ARENA_MAX: '1',
  ...process.env,
}

const readJson = (file) => JSON.parse(readFileSync(file, 'utf8'))

/**
 * Installs the pinned dependencies if any is missing. Their install scripts do not run. Without `development`, only what the
 * gateway itself needs: a service that runs models fetches the rest after it has started.
 */
export function ensureInstalled({ development }) {
  const { dependencies, devDependencies } = readJson(join(root, 'package.json'))
  const localModels = join(root, 'packages', 'local-models', 'package.json')
  const { optionalDependencies } = existsSync(localModels) ? readJson(localModels) : { optionalDependencies: {} }
  const wanted = Object.entries({
    ...dependencies,
    ...(development ? { ...optionalDependencies, ...devDependencies } : {}),
  })
  const isInstalled = ([name, version]) => {
    const file = join(root, 'node_modules', name, 'package.json')
    // Older majors are installed under an alias, with a version such as `npm:NAME@VERSION`.
    return existsSync(file) && readJson(file).version === version.split('@').at(-1)
  }
  const hasNode = pinnedNode() !== undefined || !hasPinnedNode() || (isRecentNode() && !development)
  if (wanted.every(isInstalled) && hasNode) return
  if (spawnSync('npm', ['--version'], { stdio: 'ignore' }).error) {
    process.stderr.write('Dependencies are missing, and npm is not on the PATH. Install npm and start again.\n')
    process.exit(1)
  }
  process.stderr.write('Installing dependencies (only the first time) …\n')
  // What npm has installed before stays, such as the packages of local models.
  const hasMore = Object.keys(optionalDependencies).some((name) => existsSync(join(root, 'node_modules', name)))
  const status = development || hasMore ? installAll({ development }) : installGateway()
  if (status !== 0) {
    process.stderr.write('npm could not install the dependencies. See its messages above.\n')
    process.exit(1)
  }
  spawnSync(runtime(), [join(root, 'scripts', 'compile.mjs')], {
    env: runtimeEnvironment,
    stdio: 'ignore',
    timeout: 60_000,
    killSignal: 'SIGKILL',
  })
}

function npm(command, folder) {
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  return spawnSync('npm', [...command, ...flags], { cwd: folder, stdio: ['ignore', 2, 2] }).status
}

function installAll({ development }) {
  // Not `npm ci`: it demands the optional packages of every platform, but the lock file has only those we pin.
  return npm(['install', '--no-save', ...(development ? [] : ['--omit=dev'])], root)
}

/** Installs what the gateway needs, and nothing else, in a folder of its own that then takes its place. */
function installGateway() {
  const staged = join(root, '.install')
  rmSync(staged, { recursive: true, force: true })
  mkdirSync(staged)
  const lock = gatewayLock()
  writeFileSync(join(staged, 'package.json'), JSON.stringify(lock.packages['']))
  writeFileSync(join(staged, 'package-lock.json'), JSON.stringify(lock))
  copyFileSync(join(root, '.npmrc'), join(staged, '.npmrc'))
  const status = npm(['ci'], staged)
  if (status === 0) {
    rmSync(join(root, 'node_modules'), { recursive: true, force: true })
    renameSync(join(staged, 'node_modules'), join(root, 'node_modules'))
  }
  rmSync(staged, { recursive: true, force: true })
  return status
}

/**
 * The part of the lock file that the gateway needs on this platform, with esbuild's program, and Node if it is too old here.
 * It has the address of each package: without, npm would first download lists of all versions, a third of all bytes.
 */
function gatewayLock() {
  const { name, version, dependencies } = readJson(join(root, 'package.json'))
  const { packages, ...lock } = readJson(join(root, 'package-lock.json'))
  const platform = `${process.platform}-${process.arch}`
  const needsNode = hasPinnedNode() && (pinnedNode() !== undefined || !isRecentNode())
  const programs = [`@esbuild/${platform}`, ...(needsNode ? [`node-${platform}`] : [])].filter(
    (it) => packages[`node_modules/${it}`],
  )
  const isNeeded = ([path, { dev, optional, devOptional, link }]) =>
    path.startsWith('node_modules/') &&
    (programs.some((it) => path === `node_modules/${it}`) || !(dev || optional || devOptional || link))
  const registry = spawnSync('npm', ['config', 'get', 'registry'], { cwd: root, encoding: 'utf8' }).stdout.trim()
  const withAddress = ([path, entry]) => {
    const packageName = entry.name ?? path.split('node_modules/').at(-1)
    const file = `${packageName}/-/${packageName.split('/').at(-1)}-${entry.version}.tgz`
    const resolved = new URL(file, registry.endsWith('/') ? registry : `${registry}/`).href
    return [path, { ...entry, resolved, optional: undefined, optionalDependencies: undefined }]
  }
  const needed = Object.fromEntries(Object.entries(packages).filter(isNeeded).map(withAddress))
  const added = Object.fromEntries(programs.map((it) => [it, packages[`node_modules/${it}`].version]))
  return { ...lock, packages: { '': { name, version, dependencies: { ...dependencies, ...added } }, ...needed } }
}

function isRecentNode() {
  return Number(process.versions.node.split('.')[0]) >= 24
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
  if (isRecentNode()) return process.execPath
  process.stderr.write(`Weir needs Node 24 or later on this platform; this is ${process.version}.\n`)
  return process.exit(1)
}

/**
 * The flags of a service. Each saves about a fifth of the memory under load:
 * docs/decisions/2026-11-17-plain-runtime.md has the figures. Without them, V8 lets its young generation
 * grow further, and after a burst it allocates the objects of every later request in the old generation.
 */
export const runtimeFlags = ['--max-semi-space-size=16', '--no-allocation-site-pretenuring']

/**
 * Installs what a program of the project needs, and runs it on the Node that runs Weir. In a new clone, a program starts on
 * the user's Node, which may be older than the one that was just installed; then it starts again.
 */
export async function runOnRuntime(address, main) {
  ensureInstalled({ development: true })
  if (realpathSync(process.execPath) === realpathSync(runtime())) await main()
  else runAndExit([fileURLToPath(address), ...process.argv.slice(2)])
}

/**
 * Runs the right Node on this terminal and exits with its status. Replaces this process where the platform supports it;
 * otherwise starts a child process.
 */
export function runAndExit(args, ownFlags = []) {
  const node = runtime()
  const flags = [...ownFlags, ...process.execArgv]
  const canReplace = process.platform !== 'win32' && isRecentNode()
  if (canReplace) process.execve(node, [node, ...flags, ...args], runtimeEnvironment)
  const child = spawn(node, [...flags, ...args], { stdio: 'inherit', env: runtimeEnvironment })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('exit', (code, signal) => process.exit(signal ? 1 : (code ?? 1)))
}
