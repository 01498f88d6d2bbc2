import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { stringify } from 'yaml'
import { isServiceRunning } from '../src/store/sqlite/service-lock.ts'
import { collect } from './support/cli.ts'
import { eventually } from './support/waiting.ts'
import { modelEntry } from './support/weir.ts'
import { BUSY_MACHINE_MS } from './support/weir-process.ts'

const root = join(import.meta.dirname, '..')

/** A working tree with the same packages and a cache of its own. */
function copyOfTree(): string {
  const tree = mkdtempSync(join(tmpdir(), 'weir-dev-'))
  for (const name of ['bin', 'scripts', 'src', 'console', 'packages', 'package.json', 'package-lock.json']) {
    cpSync(join(root, name), join(tree, name), { recursive: true })
  }
  mkdirSync(join(tree, 'node_modules'))
  for (const name of readdirSync(join(root, 'node_modules'))) {
    if (name !== '.cache') symlinkSync(join(root, 'node_modules', name), join(tree, 'node_modules', name))
  }
  return tree
}

it('npm run dev restarts the service when a source, a console or weir.yaml changes, and ends with it', async (t) => {
  const tree = copyOfTree()
  /** As many editors do it: the new file takes the place of the old one. */
  const replace = (file: string, text: string): void => {
    writeFileSync(join(tree, 'written'), text)
    renameSync(join(tree, 'written'), join(tree, file))
  }
  const configure = (models: readonly object[]): void =>
    replace('weir.yaml', stringify({ server: { port: 0, admin_port: 0, drain_ms: 0 }, models }))
  configure([])

  const child = spawn(process.execPath, [join(tree, 'scripts', 'dev.mjs')], {
    cwd: tree,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)]
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  t.after(async () => {
    child.kill()
    await ended
    rmSync(tree, { recursive: true, force: true })
  })
  /** How many models each service had that has started. */
  const starts = (): readonly number[] =>
    stdout()
      .split('\n')
      .slice(0, -1)
      .map((line) => (JSON.parse(line) as { models: number }).models)
  const startNumber = (count: number): Promise<void> =>
    eventually(`start number ${count}`, () => starts().length >= count, BUSY_MACHINE_MS)

  await startNumber(1)
  const source = join('src', 'shared', 'errors.ts')
  replace(source, `${readFileSync(join(tree, source), 'utf8')}\n`)
  await startNumber(2)
  appendFileSync(join(tree, 'console', 'styles', 'base.css'), '\n.added-later { color: red }\n')
  await startNumber(3)
  const bundle = join(tree, 'node_modules', '.cache', 'weir-console', 'operator', 'operator.css')
  assert.match(readFileSync(bundle, 'utf8'), /\.added-later\{/)
  replace('weir.yaml', 'servre: {}\n')
  await eventually('it waits', () => stderr().includes('starts again when a file changes'), BUSY_MACHINE_MS)
  configure([modelEntry(['http://127.0.0.1:9/v1'])])
  await startNumber(4)
  assert.deepEqual(starts(), [0, 0, 0, 1])
  assert.ok(isServiceRunning(join(tree, 'data')))
  child.kill('SIGINT')
  assert.equal(await ended, 0, stderr())
  assert.ok(!isServiceRunning(join(tree, 'data')))
})
