import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it, type TestContext } from 'node:test'
import { engineSupervisor, type EngineSupervisor } from '../../src/local-models/supervisor.ts'
import { processesNaming } from '../support/processes.ts'
import { eventually, within } from '../support/waiting.ts'

/** Longer than the supervisor itself waits for a host to start. */
const START_MS_MAX = 90_000

describe('the supervisor', () => {
  let directory: string
  const lines: string[] = []
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'weir-supervisor-'))
  })
  after(() => rm(directory, { recursive: true, force: true }))

  const limits = { threads: 1, parallelRequests: 2, memoryBudgetBytes: 1e9 }
  /** Stopped when its test ends, however that ends: a host left running would keep the failure from being reported. */
  const supervise = (t: TestContext): EngineSupervisor => {
    const supervisor = engineSupervisor({
      socketDirectory: directory,
      modelsDirectory: directory,
      ...limits,
      log: ({ message }) => lines.push(message),
    })
    t.after(() => supervisor.stop())
    return supervisor
  }

  /** Starts the host if it is not running, and returns its process. */
  async function startedHost(supervisor: EngineSupervisor): Promise<number> {
    const path = await within(START_MS_MAX, 'the host starts', supervisor.socket('onnx'))
    const [pid, ...others] = processesNaming(path)
    assert.ok(pid !== undefined && others.length === 0)
    return pid
  }

  async function crash(pid: number, signal: 'SIGKILL' | 'SIGABRT'): Promise<void> {
    const before = crashes()
    process.kill(pid, signal)
    await eventually('the supervisor notices the crash', () => crashes() > before)
  }
  const crashes = (): number => lines.filter((line) => line.startsWith('engine host ended')).length

  it('starts a host on first use, once, and stops it', async (t) => {
    const supervisor = supervise(t)
    const path = supervisor.socketPath('onnx')
    assert.deepEqual(processesNaming(path), [])
    assert.deepEqual(await Promise.all([supervisor.socket('onnx'), supervisor.socket('onnx')]), [path, path])
    assert.equal(processesNaming(path).length, 1)
    assert.ok(lines.includes('onnx engine ready'))
    await supervisor.stop()
    assert.deepEqual(processesNaming(path), [])
    assert.ok(!existsSync(path))
    await assert.rejects(supervisor.socket('onnx'), /stopping/)
  })

  it('restarts a crashed host, waiting longer each time', async (t) => {
    const supervisor = supervise(t)
    const waits: number[] = []
    for (let start = 0; start < 3; start++) {
      const started = performance.now()
      const pid = await startedHost(supervisor)
      waits.push(performance.now() - started)
      await crash(pid, 'SIGKILL')
    }
    await startedHost(supervisor)
    assert.equal(crashes(), 3)
    assert.ok((waits[2] ?? 0) > 500, `waited ${waits.join(', ')} ms`)
  })

  it('does not count a host that ended by itself as a crash: the next request starts it at once', async (t) => {
    const supervisor = supervise(t)
    const before = crashes()
    const pid = await startedHost(supervisor)
    process.kill(pid, 'SIGTERM')
    await eventually('the host is gone', () => processesNaming(supervisor.socketPath('onnx')).length === 0)
    assert.notEqual(await startedHost(supervisor), pid)
    assert.equal(crashes(), before)
  })

  it('stops using the GPU once a host has aborted twice in a row', async (t) => {
    const killed = 'engine host ended (SIGKILL); can start again in 1000 ms'
    assert.ok(lines.includes(killed), 'being killed says nothing about the GPU')
    const supervisor = supervise(t)
    const withoutGpu: boolean[] = []
    for (let start = 0; start < 3; start++) {
      const pid = await startedHost(supervisor)
      withoutGpu.push(readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes('--no-gpu'))
      await crash(pid, 'SIGABRT')
    }
    await supervisor.stop()
    assert.deepEqual(withoutGpu, [false, false, true])
    assert.ok(lines.includes('engine host ended (SIGABRT); can start again in 500 ms, without the GPU'))
  })

  it('leaves no host behind when its own process is killed', async () => {
    const program = join(directory, 'parent.ts')
    const supervisorUrl = new URL('../../src/local-models/supervisor.ts', import.meta.url).href
    const options = { socketDirectory: directory, modelsDirectory: directory, ...limits }
    await writeFile(
      program,
      `import { engineSupervisor } from '${supervisorUrl}'
      const supervisor = engineSupervisor({ ...${JSON.stringify(options)}, log: () => {} })
      process.send?.(await supervisor.socket('onnx'))`,
    )
    const parent = fork(program)
    const [path] = (await once(parent, 'message')) as [string]
    assert.equal(processesNaming(path).length, 1)
    parent.kill('SIGKILL')
    await eventually('the host is gone', () => processesNaming(path).length === 0)
  })
})
