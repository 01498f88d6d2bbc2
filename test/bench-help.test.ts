import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, it } from 'node:test'

const root = join(import.meta.dirname, '..')

function bench(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, [join(root, 'scripts', 'bench.mjs'), ...args], { encoding: 'utf8' })
}

describe('npm run bench -- --help', () => {
  it('lists the benchmarks, and describes what each measures, without running it', () => {
    const { status, stdout } = bench('--help')
    assert.equal(status, 0)
    const names = [...stdout.matchAll(/^ {2}(\S+)$/gm)].map(([, name]) => name ?? '')
    assert.match(stdout, /--publish {3}also writes what was measured to docs\/figures\.json/)
    assert.ok(names.includes('growth') && names.includes('console-rows'), stdout)
    for (const name of names) {
      const help = bench(name, '--help')
      assert.equal(help.status, 0)
      assert.match(help.stdout, new RegExp(`^npm run bench -- ${name}\n\n[A-Z].{40}`), name)
    }
    assert.match(bench('growth', '-h').stdout, /\[MODELS KEYS ROWS QUEUE STREAMS\]/)
  })

  it('lists the benchmarks when the name is unknown', () => {
    const { status, stderr } = bench('nothing', '--help')
    assert.equal(status, 2)
    assert.match(stderr, /choose one of http, /)
  })
})
