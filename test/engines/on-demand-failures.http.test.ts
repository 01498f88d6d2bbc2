import assert from 'node:assert/strict'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { inLongRun } from '../support/long-run.ts'
import { folder, isAlive, model, reached, removeNotes, say, stateOf } from '../support/on-demand-stage.ts'
import { smallDisk } from '../support/small-disk.ts'
import { eventually } from '../support/waiting.ts'
import { startWeir } from '../support/weir.ts'
import { BUSY_MACHINE_MS } from '../support/weir-process.ts'

// Side by side, because most of them wait for engines to start or end.
describe('engines on demand, when something goes wrong', { concurrency: 3 }, () => {
  after(removeNotes)

  it('that are killed under load serve what they had and what waited after their next start, and give every place back', async () => {
    const killed = join(folder, 'killed')
    const one = await model('on/demand', {}, { ANSWER_WITH: killed })
    const weir = await startWeir({ models: [one.entry] })
    try {
      // The lane has four places.
      const asked = Array.from({ length: 10 }, (_, number) => say(weir, 'on/demand', `request ${number}`))
      await eventually('four are running', () => one.calls().length === 4, BUSY_MACHINE_MS)
      process.kill(one.pids()[0]!, 'SIGKILL')
      writeFileSync(killed, '')
      for (const answer of await Promise.all(asked)) assert.equal(answer.status, 200, await answer.clone().text())
      const { data } = (await (await weir.call('/queue/status')).json()) as {
        data: { in_flight_requests: number; queue_depth: number }[]
      }
      assert.deepEqual([data[0]!.in_flight_requests, data[0]!.queue_depth], [0, 0])
      assert.equal((await weir.ledger()).length, 10)
      assert.equal(one.pids().filter(isAlive).length, 2)
    } finally {
      await weir.stop()
    }
    assert.deepEqual(one.pids().filter(isAlive), [])
  })

  it('whose output stays open after they were killed serve what they had once all is known to be over', async () => {
    const killed = join(folder, 'killed-with-output')
    const one = await model('on/demand', {}, { ANSWER_WITH: killed, ESCAPE_S: '7' })
    const weir = await startWeir({ models: [one.entry] })
    try {
      const asked = say(weir, 'on/demand')
      await eventually('it has the request', () => one.calls().length === 1, BUSY_MACHINE_MS)
      process.kill(one.pids()[0]!, 'SIGKILL')
      writeFileSync(killed, '')
      assert.equal((await asked).status, 200)
    } finally {
      await weir.stop()
    }
  })

  it('end with their guardian, and start again', async () => {
    const one = await model('on/demand')
    const weir = await startWeir({ models: [one.entry] })
    try {
      assert.equal((await say(weir, 'on/demand')).status, 200)
      const record = join(weir.dataDir, 'engines', `on--demand.${one.entry.serverless.engine.run.port}.process.json`)
      const { guardian } = JSON.parse(readFileSync(record, 'utf8')) as { guardian: { pid: number } }
      process.kill(guardian.pid, 'SIGKILL')
      await reached(weir, 'on/demand', 'failed')
      assert.deepEqual(one.pids().filter(isAlive), [])
      assert.equal((await say(weir, 'on/demand')).status, 200)
    } finally {
      await weir.stop()
    }
  })

  it('are not shared by two services on one machine: the second is refused while the first still loads', async () => {
    const loaded = join(folder, 'loaded')
    const one = await model('on/demand', {}, { LISTEN_WITH: loaded })
    const first = await startWeir({ models: [one.entry] })
    const second = await startWeir({ models: [one.entry] })
    try {
      const asked = say(first, 'on/demand')
      await eventually('it loads', () => one.pids().length === 2, BUSY_MACHINE_MS)
      const refused = await say(second, 'on/demand')
      assert.equal(refused.status, 503)
      assert.match(await refused.text(), /in use by an engine of another Weir service/)
      const { data } = (await (await first.call('/models')).json()) as { data: { engine: object }[] }
      assert.deepEqual(data[0]!.engine, { state: 'starting', ready_in_ms: null })
      writeFileSync(loaded, '')
      assert.equal((await asked).status, 200)
      assert.equal(one.pids().length, 2, 'the second service started none')
      await first.admin('POST', '/admin/v1/engines/orders', { lane: 'on/demand', order: 'stop' })
      await reached(first, 'on/demand', 'stopped')
      assert.deepEqual(one.pids().filter(isAlive), [])
      const served = (): Promise<boolean> =>
        // Its idle connection may be closed just then.
        say(second, 'on/demand').then(
          ({ status }) => status === 200,
          () => false,
        )
      await eventually('the second one has it', served, BUSY_MACHINE_MS)
    } finally {
      await first.stop()
      await second.stop()
    }
    assert.deepEqual(one.pids().filter(isAlive), [])
  })

  it('show when they will be ready, as their earlier starts took', async () => {
    const loaded = join(folder, 'loaded-again')
    const one = await model('on/demand', {}, { LISTEN_WITH: loaded })
    writeFileSync(loaded, '')
    const weir = await startWeir({ models: [one.entry] })
    try {
      const engineIn = async (path: string): Promise<{ state: string; ready_in_ms: number | null }> =>
        ((await (await weir.call(path)).json()) as { data: { engine: never }[] }).data[0]!.engine
      assert.equal((await engineIn('/models')).ready_in_ms, null, 'it has never started')
      assert.equal((await say(weir, 'on/demand')).status, 200)
      assert.equal((await engineIn('/models')).ready_in_ms, null, 'it is ready')
      await weir.admin('POST', '/admin/v1/engines/orders', { lane: 'on/demand', order: 'stop' })
      await reached(weir, 'on/demand', 'stopped')
      for (const path of ['/models', '/queue/status']) {
        const { state, ready_in_ms: ms } = await engineIn(path)
        assert.equal(state, 'stopped')
        assert.ok(ms !== null && ms > 0, path)
      }
    } finally {
      await weir.stop()
    }
  })

  it('start on a full disk, answer only what can be recorded, and go on when there is room', inLongRun, async (t) => {
    const disk = smallDisk(2 ** 23)
    if (!disk) return t.skip('only root may mount a disk')
    const one = await model('on/demand')
    const weir = await startWeir({ models: [one.entry] }, {}, { disk: disk.folder })
    const answered: string[] = []
    const ask = async (): Promise<number> => {
      const answer = await say(weir, 'on/demand')
      if (answer.status === 200) answered.push(((await answer.json()) as { id: string }).id)
      else assert.match(await answer.text(), /Usage cannot be recorded now/)
      return answer.status
    }
    try {
      const filling = join(disk.folder, 'filling')
      assert.throws(() => writeFileSync(filling, Buffer.alloc(2 ** 23)), { code: 'ENOSPC' })
      await eventually('nothing more can be recorded', async () => (await ask()) === 503, BUSY_MACHINE_MS)
      assert.equal(await stateOf(weir, 'on/demand'), 'ready')
      rmSync(filling)
      await eventually('requests are served again', async () => (await ask()) === 200, BUSY_MACHINE_MS)
      assert.equal(one.pids().filter(isAlive).length, 2, 'it was started once')
      const billed = (await weir.ledger()).filter(({ amount }) => amount > 0n)
      assert.deepEqual(
        billed.map(({ requestId }) => `chatcmpl-${requestId}`),
        answered,
      )
    } finally {
      await weir.stop()
      await disk.remove()
    }
    assert.deepEqual(one.pids().filter(isAlive), [])
  })

  it('of one group run one at a time, and a preloaded one starts with the service', async () => {
    const one = await model('on/one', { group: 'large', preload: true })
    const other = await model('on/other', { group: 'large' })
    const weir = await startWeir({ models: [one.entry, other.entry] })
    try {
      await reached(weir, 'on/one', 'ready')
      assert.equal((await say(weir, 'on/other')).status, 200)
      assert.deepEqual([await stateOf(weir, 'on/one'), await stateOf(weir, 'on/other')], ['stopped', 'ready'])
      assert.deepEqual(one.pids().filter(isAlive), [])
    } finally {
      await weir.stop()
    }
  })

  it('that do not fall asleep or wake up are ended, and start again', async () => {
    for (const path of ['/sleep', '/wake_up']) {
      const one = await model('on/demand', { sleep: {} }, { SLEEP_FAILS: path }, 'vllm')
      const weir = await startWeir({ models: [one.entry] })
      const order = (action: string): Promise<Response> =>
        weir.admin('POST', '/admin/v1/engines/orders', { lane: 'on/demand', order: action })
      try {
        assert.equal((await say(weir, 'on/demand')).status, 200)
        assert.equal((await order('sleep')).status, 200)
        await reached(weir, 'on/demand', path === '/sleep' ? 'stopped' : 'asleep')
        assert.equal((await say(weir, 'on/demand')).status, 200, path)
        assert.equal(one.pids().length, 4, 'it was started twice')
      } finally {
        await weir.stop()
      }
    }
  })
})
