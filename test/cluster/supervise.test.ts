import assert from 'node:assert/strict'
import { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { startWorkers, type Workers } from '../../src/cluster/workers/supervise.ts'
import { freePort } from '../support/free-port.ts'
import { eventually } from '../support/waiting.ts'

const BUSY_MACHINE_MS = 120_000

interface Ended {
  readonly worker: number
  readonly how: string
  readonly againInMs: number
}

/** Workers whose program is this text. Each start adds a line to a file: its place and its own process id. */
function stage(t: TestContext, count: number, program: string) {
  const folder = mkdtempSync(join(tmpdir(), 'weir-supervise-'))
  const file = join(folder, 'program.mjs')
  const starts = join(folder, 'starts')
  writeFileSync(starts, '')
  writeFileSync(
    file,
    `import { appendFileSync } from 'node:fs'
    const place = process.argv.at(-1)
    const number = Number(place.split('/')[0])
    appendFileSync(${JSON.stringify(starts)}, place + ' ' + process.pid + ' ' + process.argv.slice(2, -2).join() + ' ' + Date.now() + '\\n')
    const run = () => process.send({ kind: 'running' })
    const live = () => setInterval(() => {}, 1000)
    ${program}`,
  )
  const ended: Ended[] = []
  const workers: Workers = startWorkers({
    count,
    program: file,
    args: ['serve', '--port', '0'],
    events: { ended: (worker, how, againInMs) => void ended.push({ worker, how, againInMs }) },
  })
  workers.started.catch(() => {})
  t.after(async () => {
    await workers.stop('SIGKILL')
    rmSync(folder, { recursive: true })
  })
  const started = (): string[][] =>
    readFileSync(starts, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => line.split(' '))
  return {
    workers,
    ended,
    started,
    places: () => started().map(([place = '']) => place),
    hasStarted: (number: number) => eventually('they start', () => started().length >= number, BUSY_MACHINE_MS),
    hasEnded: (number: number) => eventually('they end', () => ended.length >= number, BUSY_MACHINE_MS),
  }
}

describe('workers', () => {
  it('start when the first one runs, each with its number and the common arguments', async (t) => {
    const { workers, started, hasStarted } = stage(t, 3, 'run(); live()')
    await workers.started
    await hasStarted(3)
    assert.deepEqual(
      started()
        .map(([place = '']) => place)
        .toSorted(),
      ['1/3', '2/3', '3/3'],
    )
    assert.equal(started()[0]?.[0], '1/3')
    assert.ok(started().every(([, , args]) => args === 'serve,--port,0'))
  })

  it('do not start if the first one ends before it runs, and it is not replaced', async (t) => {
    const { workers, places, ended } = stage(t, 2, 'process.exit(3)')
    await assert.rejects(workers.started, /the first worker ended with status 3 before it could serve/)
    await workers.stop('SIGTERM')
    assert.deepEqual([places(), ended], [['1/2'], []])
  })

  it('are replaced when they fail, after a delay that doubles', async (t) => {
    const { started, ended, hasEnded } = stage(t, 2, 'run(); if (number === 2) process.exit(7); live()')
    await hasEnded(3)
    const times = started().flatMap(([place, , , at]) => (place === '2/2' ? [Number(at)] : []))
    assert.ok((times[1] ?? 0) - (times[0] ?? 0) >= 490, 'it waits before it starts the next one')
    assert.ok((times[2] ?? 0) - (times[1] ?? 0) >= 990)
    assert.deepEqual(
      ended.slice(0, 3).map(({ worker, how, againInMs }) => [worker, how, againInMs]),
      [500, 1000, 2000].map((ms) => [2, 'ended with status 7', ms]),
    )
  })

  it('are replaced at once when they were asked to leave, and after a delay when they fail afterwards', async (t) => {
    const { ended, hasEnded, places } = stage(
      t,
      1,
      `run()
      import { readFileSync } from 'node:fs'
      const before = readFileSync(process.argv[1].replace('program.mjs', 'starts'), 'utf8').split('\\n').length - 2
      if (before >= 3) live()
      else setTimeout(() => process.exit(before < 2 ? 0 : 5), 50)`,
    )
    await hasEnded(3)
    assert.deepEqual(
      ended.map(({ how, againInMs }) => [how, againInMs]),
      [
        ['ended with status 0', 0],
        ['ended with status 0', 0],
        ['ended with status 5', 500],
      ],
    )
    assert.ok(places().length >= 3)
  })

  it('are replaced when a signal ended them, including the first one; what ran for a minute failed for the first time', async (t) => {
    const { now } = performance
    let laterMs = 0
    t.mock.method(performance, 'now', () => now.call(performance) + laterMs)
    const { workers, started, ended, hasEnded, hasStarted } = stage(t, 1, 'run(); live()')
    await workers.started
    for (const start of [0, 1]) {
      await hasStarted(start + 1)
      process.kill(Number(started()[start]?.[1]), 'SIGKILL')
      await hasEnded(start + 1)
      assert.deepEqual(ended[start], { worker: 1, how: 'was ended by SIGKILL', againInMs: 500 })
      await hasStarted(start + 2)
      laterMs += 60_001
    }
  })

  it('are started again after a delay if the system cannot start them', async (t) => {
    const { workers, started, ended, hasEnded, hasStarted } = stage(t, 1, 'run(); live()')
    await workers.started
    await hasStarted(1)
    const { execPath } = process
    process.execPath = '/absent/node'
    process.kill(Number(started()[0]?.[1]), 'SIGKILL')
    await hasEnded(2)
    process.execPath = execPath
    assert.deepEqual(ended.slice(1), [{ worker: 1, how: 'did not start (spawn /absent/node ENOENT)', againInMs: 1000 }])
    await hasStarted(2)
  })

  it('all receive a signal, and only the first one is asked to reload', async (t) => {
    const { workers, hasStarted, places } = stage(
      t,
      2,
      `run()
      for (const name of ['SIGHUP', 'SIGWINCH']) {
        process.on(name, () => appendFileSync(process.argv[1].replace('program.mjs', 'starts'), name + number + '\\n'))
      }
      appendFileSync(process.argv[1].replace('program.mjs', 'starts'), 'listens\\n')
      live()`,
    )
    await workers.started
    await hasStarted(4)
    workers.reload()
    await hasStarted(5)
    workers.signal('SIGWINCH')
    await hasStarted(7)
    assert.deepEqual(places().slice(4, 5), ['SIGHUP1'])
    assert.deepEqual(places().slice(5).toSorted(), ['SIGWINCH1', 'SIGWINCH2'])
    const kill = t.mock.method(ChildProcess.prototype, 'kill', function (this: ChildProcess) {
      return this.emit('error', new Error('it cannot be sent'))
    })
    workers.signal('SIGWINCH')
    assert.equal(kill.mock.callCount(), 2)
    kill.mock.restore()
  })

  it('stop when all have ended, and none is replaced, not even one whose replacement was due', async (t) => {
    const { workers, hasEnded, places, started } = stage(
      t,
      3,
      `process.on('SIGTERM', () => setTimeout(() => process.exit(0), 200))
      run()
      if (number === 2) process.exit(1)
      live()`,
    )
    await workers.started
    await hasEnded(3)
    // The next pause is four seconds: it must not hold up the stop.
    const before = places().length
    await workers.stop('SIGTERM')
    for (const [, pid] of started()) assert.throws(() => process.kill(Number(pid), 0), { code: 'ESRCH' })
    assert.equal(places().length, before)
  })

  it('no longer have their port when they have stopped', async (t) => {
    const port = await freePort()
    const { workers } = stage(
      t,
      1,
      `process.on('message', ({ kind }) => kind === 'listening' && run())
      process.send({ kind: 'listen', host: '127.0.0.1', port: ${port}, backlog: 10 })
      live()`,
    )
    await workers.started
    const connection = connect(port, '127.0.0.1')
    await once(connection, 'connect')
    connection.destroy()
    await workers.stop('SIGKILL')
    const [refusal] = (await once(connect(port, '127.0.0.1'), 'error')) as [NodeJS.ErrnoException]
    assert.equal(refusal.code, 'ECONNREFUSED')
  })
})
