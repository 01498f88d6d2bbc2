import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { collect } from '../support/cli.ts'
import { eventually } from '../support/waiting.ts'

/** `weir serve --workers`, in a program that is also its workers: each notes its arguments and its signals. */

const serve = new URL('../../src/cli/serve/serve.ts', import.meta.url).href

function stage(t: TestContext, worker: string) {
  const folder = mkdtempSync(join(tmpdir(), 'weir-workers-'))
  const notes = join(folder, 'notes')
  writeFileSync(notes, '')
  const program = join(folder, 'program.mjs')
  writeFileSync(
    program,
    `import { appendFileSync } from 'node:fs'
    const note = (text) => appendFileSync(${JSON.stringify(notes)}, text + '\\n')
    if (process.argv.includes('--worker')) {
      ${worker}
    } else {
      const { serve } = await import(${JSON.stringify(serve)})
      await serve.run(process.argv.slice(2)).catch((error) => note('failed: ' + error.message))
      note('stopped')
      process.exit(0)
    }`,
  )
  const start = (...args: readonly string[]) => {
    const env = { ...process.env, WEIR_REDIS_URL: 'redis://127.0.0.1:9', WEIR_DATABASE_URL: 'postgres://127.0.0.1:9/x' }
    const child = spawn(process.execPath, [program, ...args], { cwd: folder, env, stdio: ['ignore', 'ignore', 'pipe'] })
    t.after(async () => {
      if (child.kill('SIGKILL')) await once(child, 'exit')
    })
    return Object.assign(child, { logged: collect(child.stderr) })
  }
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return { folder, start, notes: () => readFileSync(notes, 'utf8').split('\n').slice(0, -1) }
}

const RUNNING = `note(process.argv.slice(2).join(' '))
  process.on('SIGTERM', () => (note('SIGTERM'), process.exit(0)))
  process.on('message', (message) => note(message.kind ?? String(message)))
  process.send({ kind: 'running' })`

describe('weir serve --workers', () => {
  it('starts itself as each worker, with the same options, and stops them with the signal that it gets', async (t) => {
    const { folder, start, notes } = stage(t, RUNNING)
    const data = join(folder, 'data')
    const primary = start('--workers', '2', '--port', '0', '--data', data, '--json')
    await eventually('both run', () => notes().length === 2, 60_000)
    const options = `serve --data ${data} --port 0 --json --worker`
    assert.deepEqual(notes().toSorted(), [`${options} 1/2`, `${options} 2/2`])
    primary.kill('SIGTERM')
    await once(primary, 'exit')
    assert.deepEqual(notes().slice(2), ['SIGTERM', 'SIGTERM', 'stopped'])
    assert.equal(primary.logged(), '')
  })

  it('leaves out options that it did not get, and reports a worker that ends, and a journal that cannot be delivered', async (t) => {
    const { folder, start, notes } = stage(t, `${RUNNING}\n  setTimeout(() => process.exit(7), 10)`)
    const directory = join(folder, 'data', 'worker-9')
    mkdirSync(directory, { recursive: true })
    writeFileSync(join(directory, 'journal'), 'not a folder')
    const primary = start('--workers', '1')
    const logged = () =>
      primary
        .logged()
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as Record<string, unknown>)
    const logs = async (text: string) => {
      await eventually(text, () => logged().some(({ msg }) => String(msg).startsWith(text)), 60_000)
      return logged().find(({ msg }) => String(msg).startsWith(text))
    }
    const ended = await logs('a worker has ended; another takes its place')
    assert.partialDeepStrictEqual(ended, { level: 40, worker: 1, again_in_ms: 500 })
    assert.ok(Math.abs(Date.parse(String(ended?.['time'])) - Date.now()) < 3_600_000)
    assert.partialDeepStrictEqual(await logs('its journal is not delivered'), { level: 40, directory })
    await eventually('it is replaced', () => notes().length >= 2, 60_000)
    assert.equal(notes()[0], 'serve --worker 1/1')
  })

  it('asks the first worker to reload on SIGHUP, and kills all of them with a second signal to stop', async (t) => {
    const worker = `const place = process.argv.at(-1)
      for (const name of ['SIGHUP', 'SIGTERM', 'SIGINT']) process.on(name, () => note(name + ' ' + place))
      process.on('disconnect', () => (note('outlives it ' + place), process.exit(0)))
      note('listens')
      process.send({ kind: 'running' })`
    const { start, notes } = stage(t, worker)
    const primary = start('--workers', '2')
    const over = once(primary, 'close')
    await eventually('both run', () => notes().length === 2, 60_000)
    primary.kill('SIGHUP')
    await eventually('it is asked to reload', () => notes().length === 3, 60_000)
    primary.kill('SIGTERM')
    await eventually('both are asked to stop', () => notes().length === 5, 60_000)
    primary.kill('SIGINT')
    const [status] = (await over) as [number]
    assert.equal(status, 1)
    assert.equal(notes()[2], 'SIGHUP 1/2')
    assert.deepEqual(notes().slice(3).toSorted(), ['SIGTERM 1/2', 'SIGTERM 2/2'])
  })

  it('fails if its first worker ends before it runs', async (t) => {
    const { start, notes } = stage(t, 'process.exit(3)')
    await once(start('--workers', '2'), 'exit')
    assert.match(notes()[0] ?? '', /^failed: /)
  })
})
