import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { enginesOf, orderEngineOf } from '../../src/operate/running-service.ts'
import { inLongRun } from '../support/long-run.ts'
import { folder, isAlive, model, reached, removeNotes, say, stateOf } from '../support/on-demand-stage.ts'
import { eventually } from '../support/waiting.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'
import { BUSY_MACHINE_MS, weirProcess } from '../support/weir-process.ts'

interface Memory {
  readonly memory_source: string
  readonly needed_bytes: number
  readonly held_bytes: number
  readonly measured_bytes: number | null
}

async function memoryOf(weir: TestWeir, lane: string): Promise<Memory> {
  const { data } = (await (await weir.admin('GET', '/admin/v1/engines')).json()) as {
    data: { lane: string; on_demand: Memory }[]
  }
  return data.find((it) => it.lane === lane)!.on_demand
}

// Side by side, because most of them wait for engines to start or end.
// The long run has some more; npm test has the same in on-demand/driver.test.ts, with processes that the test plays.
describe('engines on demand', { concurrency: 3 }, () => {
  after(removeNotes)

  it('start with the first request, which waits; later ones find them there; all ends with the service', async () => {
    const one = await model('on/demand')
    const weir = await startWeir({ models: [one.entry] })
    try {
      assert.equal(await stateOf(weir, 'on/demand'), 'stopped')
      assert.equal(one.lines().length, 0, 'it does not start before it is needed')
      const answers = await Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map((text) => say(weir, 'on/demand', text)))
      assert.deepEqual(
        answers.map((it) => it.status),
        [200, 200, 200, 200, 200, 200],
      )
      assert.equal(one.pids().length, 2, 'it was started once, with a child of its own')
      assert.equal(await stateOf(weir, 'on/demand'), 'ready')
      assert.equal((await weir.ledger()).length, 6)
    } finally {
      await weir.stop()
    }
    assert.deepEqual(one.pids().filter(isAlive), [])
  })

  it('call in the order of arrival once they are ready', async () => {
    const one = await model('on/demand')
    const weir = await startWeir({ models: [one.entry] })
    try {
      const texts = ['first', 'second', 'third', 'fourth']
      const answers: Promise<Response>[] = []
      for (const [index, text] of texts.entries()) {
        answers.push(say(weir, 'on/demand', text))
        await eventually(`${text} waits`, async () => {
          const { data } = (await (await weir.admin('GET', '/admin/v1/engines')).json()) as {
            data: { on_demand: { waiting: number; running: number } }[]
          }
          const { waiting, running } = data[0]!.on_demand
          return waiting + running > index || one.calls().length > index
        })
      }
      await Promise.all(answers)
      assert.deepEqual(
        one.calls(),
        texts.map((text) => `call ${text}`),
      )
    } finally {
      await weir.stop()
    }
  })

  it('that cannot start are refused with the reason, and the operator gets the last lines', async () => {
    const one = await model('on/demand', {}, { FAIL: '1' })
    const weir = await startWeir({ models: [one.entry] })
    try {
      const answers = await Promise.all([say(weir, 'on/demand'), say(weir, 'on/demand')])
      for (const answer of answers) {
        assert.equal(answer.status, 503)
        const { error } = (await answer.json()) as { error: { message: string; code: string } }
        assert.match(error.message, /ended with exit code 3/)
        assert.equal(error.code, 'model_unavailable')
      }
      const { data } = (await (await weir.admin('GET', '/admin/v1/engines')).json()) as {
        data: { on_demand: { state: string; problem: string; last_lines: string[] } }[]
      }
      assert.deepEqual(data[0]!.on_demand.state, 'failed')
      assert.deepEqual(data[0]!.on_demand.last_lines, ['loading the model', 'out of memory'])
      const log = readFileSync(join(weir.dataDir, 'engines', 'on--demand.log'), 'utf8')
      assert.match(log, /out of memory/)
    } finally {
      await weir.stop()
    }
  })

  it('that are not ready in time are ended', inLongRun, async () => {
    const one = await model('on/demand', { start_timeout_ms: 1000 }, { HOLD_READY: '1', IGNORE_SIGTERM: '1' })
    const weir = await startWeir({ models: [one.entry] })
    try {
      const answer = await say(weir, 'on/demand')
      assert.equal(answer.status, 503)
      assert.match(await answer.text(), /was not ready within 1 s/)
      assert.deepEqual(one.pids().filter(isAlive), [])
    } finally {
      await weir.stop()
    }
  })

  it('do not start on a port that another program has', inLongRun, async () => {
    const one = await model('on/demand')
    const other = createServer().listen(one.entry.serverless.engine.run.port, '127.0.0.1')
    await once(other, 'listening')
    const weir = await startWeir({ models: [one.entry] })
    try {
      const answer = await say(weir, 'on/demand')
      assert.equal(answer.status, 503)
      assert.match(await answer.text(), /port \d+ on 127\.0\.0\.1 is in use by another process/)
      assert.equal(one.lines().length, 0)
      other.close()
      await once(other, 'close')
      await eventually(
        'it starts when the port is free',
        async () => (await say(weir, 'on/demand')).status === 200,
        BUSY_MACHINE_MS,
      )
    } finally {
      other.close()
      await weir.stop()
    }
  })

  it('that a request crashes fail it the second time, bill nothing for it, and start again for the next', async () => {
    const one = await model('on/demand')
    const weir = await startWeir({ models: [one.entry] })
    try {
      assert.equal((await say(weir, 'on/demand', 'crash')).status, 502)
      assert.deepEqual(one.calls(), ['call crash', 'call crash'])
      await reached(weir, 'on/demand', 'failed')
      assert.equal((await say(weir, 'on/demand', 'again')).status, 200)
      assert.equal(one.pids().filter(isAlive).length, 2, 'what the first one had started is gone')
      const { data } = (await (await weir.call('/models')).json()) as { data: { engine: { state: string } }[] }
      assert.equal(data[0]!.engine.state, 'ready')
      const billed = (await weir.ledger()).map(({ httpStatus, amount }) => [httpStatus, amount > 0n])
      assert.deepEqual(billed, [
        [502, false],
        [200, true],
      ])
    } finally {
      await weir.stop()
    }
  })

  it('end when they have been idle, and start again', inLongRun, async () => {
    const one = await model('on/demand', { stop_after_idle_ms: 1000 })
    const weir = await startWeir({ models: [one.entry] })
    try {
      assert.equal((await say(weir, 'on/demand')).status, 200)
      await reached(weir, 'on/demand', 'stopped')
      assert.deepEqual(one.pids().filter(isAlive), [])
      assert.equal((await say(weir, 'on/demand')).status, 200)
    } finally {
      await weir.stop()
    }
  })

  it('are swapped when a device has no room for both, and one that can sleep does', async () => {
    const gpu = (memory: string, more = {}): object => ({ device: 'gpu0', memory, ...more })
    const sleepy = await model('on/sleepy', gpu('60GiB', { sleep: { memory: '1GiB' } }), {}, 'vllm')
    const other = await model('on/other', gpu('70GiB'))
    const weir = await startWeir({ models: [sleepy.entry, other.entry], devices: { gpu0: '80GiB' } })
    try {
      assert.equal((await say(weir, 'on/sleepy')).status, 200)
      assert.equal((await say(weir, 'on/other')).status, 200)
      assert.deepEqual([await stateOf(weir, 'on/sleepy'), await stateOf(weir, 'on/other')], ['asleep', 'ready'])
      assert.equal((await say(weir, 'on/sleepy')).status, 200)
      assert.deepEqual([await stateOf(weir, 'on/sleepy'), await stateOf(weir, 'on/other')], ['ready', 'stopped'])
      assert.deepEqual(
        sleepy.lines().filter((line) => !line.startsWith('pid')),
        ['call Hi', 'sleep', 'wake', 'call Hi'],
      )
      assert.deepEqual(other.pids().filter(isAlive), [])
    } finally {
      await weir.stop()
    }
  })

  it('without a figure have their device to themselves until they are measured, and then share it', async () => {
    const one = await model('on/one', { device: 'ram' }, { TAKE_MIB: '300' })
    const other = await model('on/other', { device: 'ram' }, { TAKE_MIB: '300' })
    const weir = await startWeir({ models: [one.entry, other.entry], devices: { ram: '4GiB' } })
    try {
      const before = await memoryOf(weir, 'on/one')
      assert.deepEqual(
        [before.memory_source, before.needed_bytes, before.measured_bytes],
        ['unmeasured', 2 ** 32, null],
      )
      await weir.admin('POST', '/admin/v1/engines/orders', { lane: 'on/one', order: 'start' })
      await reached(weir, 'on/one', 'ready')
      assert.equal((await memoryOf(weir, 'on/one')).held_bytes, 2 ** 32, 'it has taken little of what it will take')
      assert.equal((await say(weir, 'on/one')).status, 200)
      await eventually('it is measured', async () => (await memoryOf(weir, 'on/one')).measured_bytes !== null)
      const measured = await memoryOf(weir, 'on/one')
      assert.equal(measured.memory_source, 'measured')
      assert.ok(measured.needed_bytes > 300 * 2 ** 20 && measured.needed_bytes < 2 ** 30, String(measured.needed_bytes))
      assert.equal(measured.held_bytes, measured.needed_bytes)
      // The second one still needs all of the device, the first time.
      assert.equal((await say(weir, 'on/other')).status, 200)
      assert.equal(await stateOf(weir, 'on/one'), 'stopped')
      await eventually('both are measured', async () => (await memoryOf(weir, 'on/other')).measured_bytes !== null)
      assert.equal((await say(weir, 'on/one')).status, 200)
      assert.deepEqual([await stateOf(weir, 'on/one'), await stateOf(weir, 'on/other')], ['ready', 'ready'])
    } finally {
      await weir.stop()
    }
  })

  it('do not end with their last call before they are measured', { timeout: 2 * BUSY_MACHINE_MS }, async () => {
    const stopping = join(folder, 'stopping')
    const one = await model('on/one', { device: 'ram' }, { TAKE_MIB: '300', ANSWER_WITH: stopping })
    // It has no GPU to show, and takes so long that an engine that does not wait for it ends first.
    const tools = mkdtempSync(join(folder, 'tools-'))
    const slow = `#!/bin/sh\nsleep 0.5\necho measured >> ${one.notesFile}\n`
    writeFileSync(join(tools, 'nvidia-smi'), slow, { mode: 0o755 })
    const weir = await weirProcess(
      { server: { port: 0, admin_port: 0 }, models: [one.entry], devices: { ram: '4GiB' } },
      { PATH: `${tools}:${process.env['PATH']}` },
    )
    try {
      const asked = say(weir, 'on/one')
      await eventually('it has the call', () => one.calls().length === 1, BUSY_MACHINE_MS)
      await orderEngineOf(weir.dataDir, { lane: 'on/one', order: 'stop', actor: 'test' })
      writeFileSync(stopping, '')
      assert.equal((await asked).status, 200)
      await eventually('it has ended', () => one.lines().includes('end'), BUSY_MACHINE_MS)
      assert.deepEqual(one.lines().slice(-3), ['call Hi', 'measured', 'end'])
      const [engine] = (await enginesOf(weir.dataDir)) ?? []
      assert.ok(engine!.measured_bytes! > 300 * 2 ** 20, String(engine!.measured_bytes))
    } finally {
      await weir.remove()
    }
  })

  it('follow the catalog: a changed engine replaces the old one, and a removed one ends', inLongRun, async () => {
    const one = await model('on/demand')
    const weir = await startWeir({ models: [one.entry] })
    try {
      assert.equal((await say(weir, 'on/demand')).status, 200)
      const before = one.pids()
      const { entry } = one
      const changed = structuredClone(entry) as unknown as { serverless: { engine: { run: { env: object } } } }
      changed.serverless.engine.run.env = { ...changed.serverless.engine.run.env, CHANGED: '1' }
      weir.writeConfig({ models: [changed] })
      assert.equal((await weir.reload()).status, 200)
      assert.equal((await say(weir, 'on/demand')).status, 200)
      assert.deepEqual(before.filter(isAlive), [])
      weir.writeConfig({ models: [modelEntry(['http://127.0.0.1:9/v1'])] })
      assert.equal((await weir.reload()).status, 200)
      await eventually('it has ended', () => one.pids().filter(isAlive).length === 0, BUSY_MACHINE_MS)
    } finally {
      await weir.stop()
    }
  })

  it('obey operators: start, pin, stop', async () => {
    const one = await model('on/demand')
    const weir = await startWeir({ models: [one.entry] })
    const order = (action: string): Promise<Response> =>
      weir.admin('POST', '/admin/v1/engines/orders', { lane: 'on/demand', order: action })
    try {
      assert.equal((await order('start')).status, 200)
      await reached(weir, 'on/demand', 'ready')
      assert.equal((await order('pin')).status, 200)
      assert.equal((await order('sleep')).status, 409, 'only vLLM sleeps')
      assert.equal((await order('stop')).status, 200)
      await reached(weir, 'on/demand', 'stopped')
      assert.equal(
        (await weir.admin('POST', '/admin/v1/engines/orders', { lane: 'no/such', order: 'stop' })).status,
        404,
      )
    } finally {
      await weir.stop()
    }
  })

  it(
    'end when the service is killed, and no request is lost by the next one',
    { timeout: 2 * BUSY_MACHINE_MS },
    async () => {
      const one = await model('on/demand', {}, { IGNORE_SIGTERM: '1' })
      const weir = await weirProcess({ server: { port: 0, admin_port: 0 }, models: [one.entry] })
      try {
        assert.equal((await say(weir, 'on/demand')).status, 200)
        weir.signal('SIGKILL')
        await weir.ended()
        await eventually('its engine has ended', () => one.pids().filter(isAlive).length === 0, BUSY_MACHINE_MS)
        await weir.start()
        assert.equal((await say(weir, 'on/demand')).status, 200)
      } finally {
        await weir.remove()
      }
      await eventually('its engine has ended', () => one.pids().filter(isAlive).length === 0, BUSY_MACHINE_MS)
    },
  )

  it(
    'that outlived their guardian and the service are ended by the next start',
    { timeout: 2 * BUSY_MACHINE_MS },
    async () => {
      const one = await model('on/demand')
      const weir = await weirProcess({ server: { port: 0, admin_port: 0 }, models: [one.entry] })
      try {
        assert.equal((await say(weir, 'on/demand')).status, 200)
        const record = join(weir.dataDir, 'engines', `on--demand.${one.entry.serverless.engine.run.port}.process.json`)
        const { guardian } = JSON.parse(readFileSync(record, 'utf8')) as { guardian: { pid: number } }
        const [engine = 0] = one.pids()
        process.kill(weir.pid, 'SIGSTOP')
        process.kill(guardian.pid, 'SIGKILL')
        weir.signal('SIGKILL')
        await weir.ended()
        assert.equal(isAlive(engine), true)
        await weir.start()
        await eventually('it has ended', () => one.pids().filter(isAlive).length === 0, BUSY_MACHINE_MS)
        assert.equal((await say(weir, 'on/demand')).status, 200)
      } finally {
        await weir.remove()
      }
    },
  )
})
