// npm run build:console: bundles console/ into node_modules/.cache/weir-console, from where the service serves it. A start
// runs it when the sources have changed.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ensureInstalled, root } from './bootstrap.mjs'

const target = join(root, 'node_modules', '.cache', 'weir-console')
const stampFile = join(target, 'stamp')

/** Builds what the sources say, unless it is there already. A folder that cannot be written is left as it is. */
export function ensureConsole() {
  const stamp = sourceStamp()
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) return
  try {
    mkdirSync(target, { recursive: true })
    build()
    writeFileSync(stampFile, stamp)
  } catch (error) {
    process.stderr.write(`The console could not be built: ${error.message}\n`)
  }
}

function build() {
  // Packages are installed without running their scripts. This one fetches esbuild's program, and checks its hash, where
  // optional packages were left out.
  spawnSync(process.execPath, [join(root, 'node_modules', 'esbuild', 'install.js')], { stdio: 'ignore' })
  const { buildSync } = createRequire(import.meta.url)('esbuild')
  for (const name of ['workspace', 'operator']) buildOne(buildSync, name)
}

/** Each console has a folder of its own: its script, its style, and the scripts that load later. */
function buildOne(buildSync, name) {
  const outdir = join(target, name)
  rmSync(outdir, { recursive: true, force: true })
  buildSync({
    absWorkingDir: root,
    entryPoints: ['main.tsx', 'style.css'].map((file) => ({ in: `console/${name}/${file}`, out: name })),
    outdir,
    bundle: true,
    splitting: true,
    chunkNames: '[name]-[hash]',
    minify: true,
    format: 'esm',
    target: ['chrome125', 'firefox128', 'safari18'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
    loader: { '.svg': 'text' },
    logLevel: 'error',
  })
}

/** Changes with every file that goes into the bundles. */
function sourceStamp() {
  const hash = createHash('sha256')
  const files = readdirSync(join(root, 'console'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
  const others = [
    'package-lock.json',
    'scripts/build-console.mjs',
    'src/server/docs/code-samples.ts',
    'src/server/theme/tokens.css',
  ]
  for (const file of [...files.sort(), ...others.map((name) => join(root, name))]) hash.update(readFileSync(file))
  return hash.digest('hex')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  ensureInstalled({ development: false })
  mkdirSync(target, { recursive: true })
  build()
  writeFileSync(stampFile, sourceStamp())
}
