import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { engineSupervisor } from '../../src/embedded/service/supervisor.ts'

describe('the supervisor', () => {
  let directory: string
  const lines: string[] = []
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'weir-supervisor-'))
  })
  after(() => rm(directory, { recursive: true, force: true }))

  const supervise = () =>
    engineSupervisor({
      socketDirectory: directory,
      modelsDirectory: directory,
      threads: 1,
      log: ({ message }) => lines.push(message),
    })

  it('starts a host on first use, once, and stops it', async () => {
    const supervisor = supervise()
    assert.equal(supervisor.status().onnx.state, 'off')
    const [first, second] = await Promise.all([supervisor.socket('onnx'), supervisor.socket('onnx')])
    assert.equal(first, second)
    const { state, pid } = supervisor.status().onnx
    assert.equal(state, 'running')
    assert.ok(lines.includes('onnx engine ready'))
    await supervisor.stop()
    assert.ok(!isAlive(pid) && !existsSync(first))
    await assert.rejects(supervisor.socket('onnx'), /stopping/)
  })

  it('starts a crashed host again, waiting longer each time', async () => {
    const supervisor = supervise()
    const waits: number[] = []
    for (let crash = 0; crash < 3; crash++) {
      const started = performance.now()
      await supervisor.socket('onnx')
      waits.push(performance.now() - started)
      process.kill(supervisor.status().onnx.pid ?? 0, 'SIGKILL')
      while (supervisor.status().onnx.restarts === crash) await setTimeout(10)
    }
    await supervisor.socket('onnx')
    assert.equal(supervisor.status().onnx.restarts, 3)
    assert.ok((waits[2] ?? 0) > 500, `waited ${waits.join(', ')} ms`)
    assert.ok(lines.some((line) => line.includes('SIGKILL')))
    await supervisor.stop()
  })

  it('leaves the GPU alone once a host has aborted twice in a row', async () => {
    const killed = 'engine host ended (SIGKILL), restarts after 1000 ms'
    assert.ok(lines.includes(killed), 'being killed says nothing about the GPU')
    const supervisor = supervise()
    const withoutGpu: boolean[] = []
    for (let start = 0; start < 3; start++) {
      await supervisor.socket('onnx')
      const { pid } = supervisor.status().onnx
      withoutGpu.push(readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes('--no-gpu'))
      process.kill(pid ?? 0, 'SIGABRT')
      while (supervisor.status().onnx.restarts === start) await setTimeout(10)
    }
    await supervisor.stop()
    assert.deepEqual(withoutGpu, [false, false, true])
    assert.ok(lines.includes('engine host ended (SIGABRT), restarts after 500 ms, without a GPU'))
  })

  it('leaves no host behind when its own process is killed', async () => {
    const program = join(directory, 'parent.ts')
    const supervisorUrl = new URL('../../src/embedded/service/supervisor.ts', import.meta.url).href
    await writeFile(
      program,
      `import { engineSupervisor } from '${supervisorUrl}'
      const supervisor = engineSupervisor({ socketDirectory: '${directory}', modelsDirectory: '${directory}', log: () => {} })
      await supervisor.socket('onnx')
      process.send?.(supervisor.status().onnx.pid)`,
    )
    const parent = fork(program)
    const [pid] = (await once(parent, 'message')) as [number]
    assert.ok(isAlive(pid))
    parent.kill('SIGKILL')
    for (let wait = 0; wait < 50 && isAlive(pid); wait++) await setTimeout(100)
    assert.ok(!isAlive(pid))
  })
})

function isAlive(pid: number | undefined): boolean {
  try {
    return process.kill(pid ?? 0, 0)
  } catch {
    return false
  }
}
