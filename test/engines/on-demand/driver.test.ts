import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import type { EngineDescription, EngineRun } from '../../../src/catalog/model.ts'
import type { Engine, EngineCall } from '../../../src/engines/engine.ts'
import type { EngineProgram } from '../../../src/engines/on-demand/engine-process.ts'
import { memoryOf } from '../../../src/engines/on-demand/memory-use.ts'
import { onDemandEngines, type EngineOrder } from '../../../src/engines/on-demand/on-demand.ts'
import { takePort } from '../../../src/engines/on-demand/port.ts'
import { signalGroup } from '../../../src/engines/on-demand/process-group.ts'
import { engineRun } from '../../support/engine-run.ts'
import { freePort } from '../../support/free-port.ts'
import { turn } from '../../support/hand-clock.ts'
import { manualClock } from '../../support/manual-clock.ts'
import { openFiles } from '../../support/open-files.ts'
import { eventually, within } from '../../support/waiting.ts'

/** Engines that start when they are needed. Their processes are servers of the test, and it moves the clock. */

function stage(
  t: TestContext,
  { group = -1, answers = (): number => 200, isStoppedAtOnce = true, isSilentWhen = '' } = {},
) {
  const dataDir = mkdtempSync(join(tmpdir(), 'weir-driver-'))
  const { clock, alarms, advance } = manualClock()
  /** What happened, and the requests that the servers got. */
  const seen: string[] = []
  const programs: EngineProgram[] = []
  const ends: ((reason: string) => void)[] = []
  const lingering = Promise.withResolvers<void>()
  const engines = onDemandEngines({
    dataDir,
    environment: { HOME: '/home', WEIR_ADMIN_TOKEN: 'secret' },
    clock,
    events: {
      started: (lane, ms) => void seen.push(`${lane} started in ${ms} ms`),
      failed: (lane, reason, lines) => void seen.push(`${lane} failed: ${[reason, ...lines].join('; ')}`),
      stopped: (lane) => void seen.push(`${lane} stopped`),
      lingers: (lane) => void seen.push(`${lane} lingers`),
      tookTooMuch: (lane) => void seen.push(`${lane} took too much`),
      leftoversEnded: () => assert.fail('nothing is left'),
    },
    readyPath: ({ kind }) => `/ready/${kind}`,
    startProcess(program) {
      programs.push(program)
      const server = createServer(({ method, url }, response) => {
        seen.push(`${method} ${url}`)
        if (url !== isSilentWhen) response.writeHead(answers()).end()
      }).listen(Number(program.command.at(-1)))
      const { promise: ended, resolve } = Promise.withResolvers<string>()
      const end = (reason: string): void => {
        server.close()
        server.closeAllConnections()
        resolve(reason)
      }
      ends.push(end)
      const stop = (): void => (isStoppedAtOnce ? end('it was stopped') : void seen.push('asked to stop'))
      return { group, ended, lingers: lingering.promise, stop }
    },
  })
  t.after(async () => {
    for (const end of ends) end('the test is over')
    await engines.close()
    rmSync(dataDir, { recursive: true })
  })
  return {
    dataDir,
    engines,
    alarms,
    seen,
    programs,
    advance,
    ends: (reason: string) => ends.at(-1)?.(reason),
    lingers: () => lingering.resolve(),
    saw: (text: string) => eventually(text, () => seen.includes(text)),
    status: (lane = 'a/b') => engines.list().find((it) => it.lane === lane) ?? assert.fail(),
    order: (order: EngineOrder) => engines.order('a/b', order),
    /** An engine of the catalog, whose server ends each call with `finish`. */
    async add(changes: Partial<EngineRun> = {}, lane = 'a/b') {
      const port = changes.port ?? (await freePort())
      const run = engineRun({
        command: ['serve', '${PORT}'],
        env: { ADDRESS: ':${PORT}' },
        port,
        readyPath: '/health',
        ...changes,
      })
      const done: (() => void)[] = []
      const upstream = {
        run() {
          seen.push(`${lane} is called`)
          const { promise: ended, resolve } = Promise.withResolvers<object>()
          done.push(() => resolve({ kind: 'ended' }))
          return { ended, abort: () => resolve({ kind: 'aborted' }) }
        },
        close: async () => void seen.push(`${lane} is closed`),
      } as unknown as Engine
      const engine = engines.engine(
        lane,
        { kind: 'vllm', run } as EngineDescription & { run: EngineRun },
        () => upstream,
      )
      const call = async () => {
        const end = await engine.run({} as EngineCall).ended
        return end.kind === 'failed' ? end.error.message : end.kind
      }
      return { port, engine, call, finish: () => done.shift()?.() }
    },
  }
}

async function freeAgain(port: number): Promise<void> {
  const taken = await takePort(port)
  if ('problem' in taken) assert.fail(taken.problem)
  taken.release()
}

describe('an engine on demand', () => {
  it('starts with its first call on its port, without the secrets of the service, and ends when it was idle', async (t) => {
    const { add, advance, saw, seen, programs, status, alarms, dataDir } = stage(t)
    const { port, engine, call, finish } = await add({ stopAfterIdleMs: 700 })
    assert.equal(statSync(join(dataDir, 'engines')).mode & 0o777, 0o700)
    assert.deepEqual([engine.start?.()?.state, seen], ['stopped', []])
    const ended = call()
    await saw('a/b is called')
    assert.deepEqual(seen, ['GET /health', 'a/b started in 0 ms', 'a/b is called'])
    assert.partialDeepStrictEqual(programs, [
      { command: ['serve', String(port)], env: { HOME: '/home', ADDRESS: `:${port}` } },
    ])
    assert.equal(programs[0]?.env['WEIR_ADMIN_TOKEN'], undefined)
    assert.partialDeepStrictEqual(status(), { state: 'ready', running: 1, waiting: 0, startsMs: [0] })
    finish()
    assert.equal(await ended, 'ended')
    advance(699)
    assert.equal(status().state, 'ready')
    advance(1)
    await saw('a/b stopped')
    assert.deepEqual([seen.slice(3), status().state, alarms.size], [['a/b is closed', 'a/b stopped'], 'stopped', 0])
    await freeAgain(port)
  })

  it('starts by itself if it is preloaded, and answers at the usual path of its kind', async (t) => {
    const { add, saw, status, order } = stage(t)
    await add({ isPreloaded: true, readyPath: undefined })
    await saw('GET /ready/vllm')
    await saw('a/b started in 0 ms')
    await add({}, 'c/d')
    order('stop')
    await saw('a/b stopped')
    assert.equal(status().problem, undefined)
    order('start')
    await eventually('it has started again', () => status().startsMs.length === 2)
  })

  it('that crashes has failed with what it printed last, and starts again after a pause for the next call', async (t) => {
    const { add, saw, seen, ends, programs, status, advance, dataDir } = stage(t)
    const { call } = await add()
    void call()
    await saw('a/b is called')
    programs[0]?.log.write(Buffer.from('out of memory\n'))
    ends('ended with exit code 3')
    await saw('a/b failed: ended with exit code 3; out of memory')
    assert.ok(seen.includes('a/b is closed'), 'nothing is connected to it any more')
    if (process.platform === 'linux') await eventually('its log is closed', () => openFiles(dataDir) === 0)
    assert.partialDeepStrictEqual(status(), {
      state: 'failed',
      problem: 'ended with exit code 3',
      lastLines: ['out of memory'],
    })
    void call()
    assert.equal(programs.length, 1)
    advance(1000)
    await eventually('it has started again', () => seen.filter((it) => it === 'a/b is called').length === 2)
    assert.deepEqual([status().lastLines, status().state], [[], 'ready'])
  })

  it('that has crashed does not start again once the service has closed its engines', async (t) => {
    const { engines, add, saw, ends, alarms } = stage(t)
    const { call } = await add()
    void call()
    await saw('a/b is called')
    ends('ended with exit code 3')
    await saw('a/b failed: ended with exit code 3')
    void call()
    assert.equal(alarms.size, 1)
    await engines.close()
    assert.equal(alarms.size, 0)
  })

  it('ends with the service, which waits for it; one that has crashed does not start again meanwhile', async (t) => {
    const { engines, add, saw, seen, ends, alarms } = stage(t, { isStoppedAtOnce: false })
    const crashed = await add({}, 'c/d')
    void crashed.call()
    await saw('c/d is called')
    ends('ended with exit code 3')
    await saw('c/d failed: ended with exit code 3')
    void crashed.call()
    await add({ isPreloaded: true })
    await saw('a/b started in 0 ms')
    let isClosed = false
    const closed = engines.close().then(() => (isClosed = true))
    assert.ok(seen.includes('asked to stop'), 'it is asked at once')
    assert.equal(alarms.size, 0)
    await turn()
    assert.equal(isClosed, false)
    ends('it was stopped')
    await closed
  })

  it('that cannot tell within two minutes that it sleeps is stopped', async (t) => {
    const limits: { readonly ms: number; readonly limit: AbortController }[] = []
    t.mock.method(AbortSignal, 'timeout', (ms: number) => {
      const limit = new AbortController()
      limits.push({ ms, limit })
      return limit.signal
    })
    const { add, saw, order } = stage(t, { isSilentWhen: '/sleep?level=1' })
    await add({ sleep: { bytes: 1 }, isPreloaded: true })
    await saw('a/b started in 0 ms')
    order('sleep')
    await saw('POST /sleep?level=1')
    const { ms, limit } = limits.at(-1)!
    assert.equal(ms, 120_000, 'it moves its weights between memories')
    limit.abort()
    await saw('a/b stopped')
  })

  it('that does not answer in time is ended, and its calls fail with the reason, which is not that of later ends', async (t) => {
    let status = 503
    const { add, saw, ends, advance } = stage(t, { answers: () => status })
    const { call } = await add({ startTimeoutMs: 4600 })
    const ended = call()
    await saw('GET /health')
    advance(4601)
    await saw('a/b failed: was not ready within 5 s')
    assert.match(await ended, /not running: was not ready within 5 s\./)
    status = 200
    advance(1000)
    void call()
    await saw('a/b is called')
    ends('ended with exit code 3')
    await saw('a/b failed: ended with exit code 3')
  })

  it('does not start on a port that is in use, nor if it is stopped before it has its port', async (t) => {
    const { add, saw, programs, order, status } = stage(t)
    const { port, call } = await add()
    const taken = await takePort(port)
    const problem = `port ${port} on 127.0.0.1 is in use by an engine of another Weir service on this machine`
    assert.ok((await call()).includes(`not running: ${problem}.`))
    await saw(`a/b failed: ${problem}`)
    if ('release' in taken) taken.release()
    order('start')
    order('stop')
    await saw('a/b stopped')
    assert.deepEqual([programs, status().state], [[], 'stopped'])
    await freeAgain(port)
  })

  it('that was asked to stop is let go at once, and a call that arrives before its end waits for the next start', async (t) => {
    const { add, saw, seen, order, ends, status } = stage(t, { isStoppedAtOnce: false })
    const { engine, call, finish } = await add({ isPreloaded: true })
    await saw('a/b started in 0 ms')
    order('stop')
    await saw('asked to stop')
    assert.deepEqual([seen.includes('a/b is closed'), engine.addresses()], [true, []])
    const ended = call()
    assert.partialDeepStrictEqual(status(), { state: 'stopping', waiting: 1 })
    ends('it was stopped')
    await saw('a/b is called')
    finish()
    assert.equal(await ended, 'ended')
    const closed = engine.close()
    ends('it was stopped')
    await closed
  })

  it('that was killed and does not end has its place until it is gone, and the service ends without it', async (t) => {
    const device = { name: 'gpu0', bytes: 10 }
    const { add, saw, order, lingers, ends, status, engines } = stage(t, { isStoppedAtOnce: false })
    const { engine } = await add({ isPreloaded: true, device, bytes: 10 })
    await saw('a/b started in 0 ms')
    order('stop')
    lingers()
    await saw('a/b lingers')
    assert.partialDeepStrictEqual(status(), { state: 'stopping', bytes: 10 })
    await engine.close()
    await within(10_000, 'the service ends', engines.close())
    ends('it was killed')
    await saw('a/b stopped')
  })

  it('sleeps and wakes up at the endpoints of vLLM, and is stopped if it cannot', async (t) => {
    const answers = { status: 200, takes: 0 }
    const { add, saw, advance, order, status } = stage(t, {
      answers() {
        advance(answers.takes)
        return answers.status
      },
    })
    await add({ sleep: { bytes: 1 }, isPreloaded: true })
    await saw('a/b started in 0 ms')
    answers.takes = 30
    order('sleep')
    await saw('POST /sleep?level=1')
    await eventually('it sleeps', () => status().state === 'asleep')
    assert.deepEqual([status().canSleep, status().readyInMs, status().startsMs], [true, undefined, [0]])
    order('wake')
    assert.equal(status().state, 'waking')
    await saw('POST /wake_up')
    await eventually('it is awake', () => status().state === 'ready')
    order('sleep')
    await eventually('it sleeps', () => status().state === 'asleep')
    assert.deepEqual([status().readyInMs, status().startsMs], [30, [0]], 'it is expected to wake up as fast as before')
    answers.status = 500
    order('wake')
    advance(10)
    assert.equal(status().readyInMs, 20)
    await saw('a/b stopped')
  })

  it('that the catalog no longer has ends, and the one in its place is the one that obeys', async (t) => {
    const { add, saw, engines, order, seen } = stage(t)
    const { engine, call, finish } = await add()
    void call()
    await saw('a/b is called')
    const next = await add()
    let isGone = false
    const closed = engine.close().then(() => (isGone = true))
    assert.equal(engines.list().length, 1)
    order('start')
    await eventually('the other has started', () => seen.filter((it) => it.includes('started')).length === 2)
    assert.equal(isGone, false, 'its call has not ended')
    order('pin')
    assert.deepEqual(
      engines.list().map(({ isPinned }) => isPinned),
      [true],
    )
    order('unpin')
    assert.equal(next.engine.start?.()?.state, 'ready')
    finish()
    await closed
    assert.equal(engine.start?.(), undefined)
  })

  it('is measured when its calls end, at most once a minute', { skip: process.platform !== 'linux' }, async (t) => {
    // It has one more child for each line that it reads.
    const script = 'sleep 600 & while read line; do sleep 600 & done'
    const processes = spawn('sh', ['-c', script], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] })
    t.after(() => signalGroup(processes.pid!, 'SIGKILL'))
    await eventually('they run', async () => (await memoryOf(processes.pid!)) !== undefined)
    const { engines, add, saw, seen, status, advance } = stage(t, { group: processes.pid! })
    const device = { name: 'gpu0', bytes: 2 ** 40 }
    const { call, finish } = await add({ device })
    const tiny = await add({ device: { name: 'gpu1', bytes: 2 ** 40 }, bytes: 1 }, 'c/d')
    const serve = async (lane: string, { call: run, finish: end }: { call(): Promise<string>; finish(): void }) => {
      const before = seen.length
      const ended = run()
      await eventually('it is called', () => seen.includes(`${lane} is called`, before))
      end()
      await ended
    }
    assert.partialDeepStrictEqual(status(), { bytes: 0, memory: { bytes: device.bytes, source: 'unmeasured' } })
    await serve('a/b', { call, finish })
    await eventually('it is measured', () => status().memory?.source === 'measured')
    assert.equal(status().bytes, status().memory?.bytes)
    assert.ok(status().bytes > 0 && status().bytes < device.bytes)
    const first = status().memory?.measuredBytes ?? 0
    processes.stdin.write('\n\n')
    await eventually('it takes more', async () => ((await memoryOf(processes.pid!)) ?? 0) > 1.2 * first)
    advance(59_999)
    await serve('a/b', { call, finish })
    assert.equal(status().memory?.measuredBytes, first)
    advance(1)
    await serve('a/b', { call, finish })
    await eventually('it is measured again', () => (status().memory?.measuredBytes ?? 0) > first)
    for (let calls = 1; calls <= 2; calls++) await serve('c/d', tiny)
    await saw('c/d took too much')
    assert.partialDeepStrictEqual(status('c/d'), { bytes: 1, deviceBytes: 2 ** 40, device: 'gpu1' })
    advance(60_000)
    await serve('c/d', tiny)
    engines.order('c/d', 'stop')
    await saw('c/d stopped')
    const reports = (): number => seen.filter((it) => it === 'c/d took too much').length
    assert.equal(reports(), 1, 'it is reported once')
    await serve('c/d', tiny)
    await eventually('it is reported for each start', () => reports() === 2)
  })
})
