import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ChildProcess } from 'node:child_process'
import { after, afterEach, before, describe, it, type TestContext } from 'node:test'
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
console.error('a line of stderr')
rmSync(socket, { force: true })
createServer({ keepAliveTimeout: 600_000 }, (request, response) => {
  if (request.method === 'GET') return response.end(JSON.stringify({ loaded: [request.url, ...unloaded] }))
  request.on('data', (data) => unloaded.push(request.method + ' ' + request.url + ' ' + data))
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

  afterEach(() => writeFile(hostProgram, HOST))

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
    const [pid, ...others] = processesNaming(path)
    assert.deepEqual(others, [])
    const given = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(2, -1)
    const places = [`--socket=${path}`, `--models=${directory}`]
    const computing = ['--threads=1', '--parallel=2', '--memory-budget=1000000000']
    assert.deepEqual(given, ['--runtime=onnx', ...places, ...computing])
    assert.ok(lines.includes('onnx engine ready'))
    await eventually('all that it prints is logged', () => lines.includes('a line of stderr'))
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

  it(
    'starts another host if the last one is dead, even before its exit is reported',
    { skip: process.platform !== 'linux' },
    async (t) => {
      const supervisor = supervise(t)
      const pid = await startedHost(supervisor)
      process.kill(pid, 'SIGKILL')
      // No event is handled meanwhile. The last of its threads closes the socket.
      for (;;) {
        const isZombie = readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')
        if (isZombie && readdirSync(`/proc/${pid}/task`).length === 1) break
      }
      assert.notEqual(await startedHost(supervisor), pid)
    },
  )

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
    const [other] = processesNaming(await within(START_MS_MAX, 'the host starts', supervisor.socket('llama')))
    const ofOther = readFileSync(`/proc/${other}/cmdline`, 'utf8').split('\0')
    await supervisor.stop()
    assert.deepEqual(withoutGpu, [false, false, true])
    assert.ok(ofOther.includes('--runtime=llama') && !ofOther.includes('--no-gpu'), 'the other runtime keeps it')
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
    assert.deepEqual(await supervisor.loaded('onnx'), ['/health', 'POST /unload {"model":"a/b"}'])
    assert.deepEqual(await supervisor.loaded('llama'), [])
    // The first is the socket that the host listens on.
    await eventually('no connection is left', () => socketsOf(supervisor.socketPath('onnx')) === 1)
  })

  const socketsOf = (path: string): number =>
    readFileSync('/proc/net/unix', 'utf8')
      .split('\n')
      .filter((line) => line.endsWith(path)).length

  it('asks a host for at most two seconds: one that does not answer has no models', async (t) => {
    const supervisor = supervise(t)
    await writeFile(
      hostProgram,
      HOST.replace("request.method === 'GET'", 'true').replace('response.end', 'console.log'),
    )
    await startedHost(supervisor)
    const over = new AbortController()
    t.mock.method(AbortSignal, 'timeout', (ms: number) => (assert.equal(ms, 2000), over.signal))
    const loaded = supervisor.loaded('onnx')
    await eventually('it is asked', () => lines.at(-1) === '{"loaded":["/health"]}')
    over.abort()
    assert.deepEqual(await loaded, [])
  })

  it('refuses a request whose host ends before it is ready, and starts it again', async (t) => {
    const supervisor = supervise(t)
    await writeFile(hostProgram, 'process.exit(1)')
    await assert.rejects(supervisor.socket('onnx'), /^Error: the engine host ended before it was ready$/)
    await writeFile(hostProgram, HOST)
    await startedHost(supervisor)
  })

  it('ends a host that is not ready within a minute', async (t) => {
    const supervisor = supervise(t)
    await writeFile(hostProgram, 'setInterval(() => {}, 1000)')
    const over = new AbortController()
    t.mock.method(AbortSignal, 'timeout', (ms: number) => (assert.equal(ms, 60_000), over.signal))
    const refused = assert.rejects(supervisor.socket('onnx'), { name: 'AbortError' })
    await eventually('it runs', () => processesNaming(supervisor.socketPath('onnx')).length === 1)
    over.abort()
    await refused
    await eventually('it has ended', () => processesNaming(supervisor.socketPath('onnx')).length === 0)
  })

  it('starts a host again that could not be run', async (t) => {
    const supervisor = supervise(t)
    const { execPath } = process
    process.execPath = join(directory, 'nothing')
    await assert.rejects(supervisor.socket('onnx'), { code: 'ENOENT' }).finally(() => (process.execPath = execPath))
    assert.match(lines.at(-1) ?? '', /^engine host ended \(spawn .* ENOENT\); can start again in 250 ms$/)
    await startedHost(supervisor)
  })

  it('starts no host once it stops, not even for a request that waits for the end of a pause', async (t) => {
    const supervisor = supervise(t)
    await crash(await startedHost(supervisor), 'SIGKILL')
    const refused = assert.rejects(supervisor.socket('onnx'), /stopping/)
    await supervisor.stop()
    await refused
    assert.deepEqual(processesNaming(supervisor.socketPath('onnx')), [])
  })

  it('kills a host that has not ended five seconds after it was asked to, and only then', async (t) => {
    const signals: unknown[] = []
    const kill = ChildProcess.prototype.kill
    t.mock.method(ChildProcess.prototype, 'kill', function (this: ChildProcess, signal: NodeJS.Signals) {
      signals.push(signal)
      return kill.call(this, signal)
    })
    for (const isStuck of [false, true]) {
      // A second signal would end it.
      if (isStuck)
        await writeFile(hostProgram, HOST.replace(/on\('SIGTERM'.*/, "once('SIGTERM', () => console.log('no'))"))
      const supervisor = supervise(t)
      await startedHost(supervisor)
      t.mock.timers.enable({ apis: ['setTimeout'] })
      const stopped = supervisor.stop()
      if (isStuck) t.mock.timers.tick(4999)
      else await stopped
      assert.deepEqual(signals, ['SIGTERM'])
      t.mock.timers.tick(isStuck ? 1 : 5000)
      t.mock.timers.reset()
      assert.deepEqual(signals.splice(0), isStuck ? ['SIGTERM', 'SIGKILL'] : ['SIGTERM'])
      await stopped
    }
  })
})
