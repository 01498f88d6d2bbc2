import assert from 'node:assert/strict'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it, type TestContext } from 'node:test'
import { engineSupervisor, type EngineSupervisor } from '../../src/local-models/supervisor.ts'
import { processesNaming } from '../support/processes.ts'
import { eventually, within } from '../support/waiting.ts'

/** Longer than the supervisor itself waits for a host to start. */
const START_MS_MAX = 90_000

/** Listens as the host of models does, and has no models. */
const HOST = `
import { rmSync } from 'node:fs'
import { createServer } from 'node:http'
const socket = process.argv.find((it) => it.startsWith('--socket=')).slice('--socket='.length)
process.on('SIGTERM', () => process.exit(0))
process.on('disconnect', () => process.exit(0))
const unloaded = []
rmSync(socket, { force: true })
createServer((request, response) => {
  if (request.method === 'GET') return response.end(JSON.stringify({ loaded: [request.url, ...unloaded] }))
  request.on('data', (data) => unloaded.push(request.url + ' ' + data))
  request.on('end', () => response.end('{}'))
}).listen(socket, () => {
  console.log('onnx engine ready')
  process.send('ready')
})
`

describe('the supervisor', () => {
  let directory: string
  const lines: string[] = []
  let hostProgram: string
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'weir-supervisor-'))
    hostProgram = join(directory, 'host.mjs')
    await writeFile(hostProgram, HOST)
  })
  after(() => rm(directory, { recursive: true, force: true }))

  const limits = { threads: 1, parallelRequests: 2, memoryBudgetBytes: 1e9 }
  /** Stopped when its test ends, however that ends: a host left running would keep the failure from being reported. */
  const supervise = (t: TestContext): EngineSupervisor => {
    const supervisor = engineSupervisor({
      hostProgram,
      socketDirectory: join(directory, 'sockets'),
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
    assert.equal(statSync(join(directory, 'sockets')).mode & 0o777, 0o700, 'others of the machine cannot connect')
    await supervisor.stop()
    assert.deepEqual(processesNaming(path), [])
    assert.ok(!existsSync(path))
    await assert.rejects(supervisor.socket('onnx'), /stopping/)
  })

  it('restarts a crashed host after a pause', async (t) => {
    const supervisor = supervise(t)
    const waits: number[] = []
    for (let start = 0; start < 2; start++) {
      const started = performance.now()
      const pid = await startedHost(supervisor)
      waits.push(performance.now() - started)
      await crash(pid, 'SIGKILL')
    }
    assert.ok((waits[1] ?? 0) > 240, `waited ${waits.join(', ')} ms`)
  })

  it('does not count a host that ended by itself as a crash: the next request starts it at once', async (t) => {
    const supervisor = supervise(t)
    const before = crashes()
    const pid = await startedHost(supervisor)
    process.kill(pid, 'SIGTERM')
    await eventually('another host runs', async () => {
      const [other] = processesNaming(await supervisor.socket('onnx'))
      return other !== undefined && other !== pid
    })
    assert.equal(crashes(), before)
  })

  it('stops using the GPU once a host has aborted twice in a row', async (t) => {
    const killed = 'engine host ended (SIGKILL); can start again in 500 ms'
    assert.ok(lines.includes(killed), 'being killed says nothing about the GPU')
    const supervisor = supervise(t)
    t.mock.timers.enable({ apis: ['Date'] })
    const withoutGpu: boolean[] = []
    for (let start = 0; start < 3; start++) {
      const pid = await startedHost(supervisor)
      withoutGpu.push(readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes('--no-gpu'))
      await crash(pid, 'SIGABRT')
      t.mock.timers.tick(1000)
    }
    await supervisor.stop()
    assert.deepEqual(withoutGpu, [false, false, true])
    assert.ok(lines.includes('engine host ended (SIGABRT); can start again in 500 ms, without the GPU'))
  })

  it('waits twice as long after each crash in a row, up to 30 s, and refuses requests while that is long', async (t) => {
    const supervisor = supervise(t)
    t.mock.timers.enable({ apis: ['Date'] })
    const pauses: string[] = []
    const crashOnce = async (): Promise<void> => {
      await crash(await startedHost(supervisor), 'SIGKILL')
      pauses.push(/in (\d+) ms/.exec(lines.at(-1) ?? '')?.[1] ?? '')
    }
    for (const pauseMs of [250, 500, 1000, 2000, 4000]) {
      await crashOnce()
      t.mock.timers.tick(pauseMs)
    }
    await crashOnce()
    const keepsCrashing = 'the onnx engine host keeps crashing; it starts again in'
    await assert.rejects(supervisor.socket('onnx'), { message: `${keepsCrashing} 8 s` })
    t.mock.timers.tick(2999)
    await assert.rejects(supervisor.socket('onnx'), { message: `${keepsCrashing} 6 s` })
    t.mock.timers.tick(5001)
    await crashOnce()
    t.mock.timers.tick(16_000)
    await crashOnce()
    t.mock.timers.tick(30_000)
    assert.deepEqual(pauses, ['250', '500', '1000', '2000', '4000', '8000', '16000', '30000'])

    for (const [livedMs, pauseMs] of [
      [30_000, '30000'],
      [30_001, '250'],
    ] as const) {
      const pid = await startedHost(supervisor)
      t.mock.timers.tick(livedMs)
      await crash(pid, 'SIGKILL')
      assert.match(lines.at(-1) ?? '', new RegExp(`in ${pauseMs} ms`), `after ${livedMs} ms`)
      t.mock.timers.tick(30_000)
    }
  })

  it('asks a running host for its models, and has it unload one', async (t) => {
    const supervisor = supervise(t)
    assert.deepEqual(await supervisor.loaded('onnx'), [])
    await startedHost(supervisor)
    await supervisor.unload('onnx', 'a/b')
    assert.deepEqual(await supervisor.loaded('onnx'), ['/health', '/unload {"model":"a/b"}'])
    assert.deepEqual(await supervisor.loaded('llama'), [])
  })

  it('refuses a request whose host ends before it is ready, and starts it again', async (t) => {
    const supervisor = supervise(t)
    await writeFile(hostProgram, 'process.exit(1)')
    await assert.rejects(supervisor.socket('onnx'), /^Error: the engine host ended before it was ready$/)
    await writeFile(hostProgram, HOST)
    await startedHost(supervisor)
  })
})
