import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { cli } from '../support/cli.ts'
import { scriptedService } from '../support/scripted-service.ts'

describe('weir engines', () => {
  it('lists engines and gives orders to the running service', async (t) => {
    const dataDir = mkdtempSync(join(tmpdir(), 'weir-engines-'))
    t.after(() => rmSync(dataDir, { recursive: true, force: true }))
    const stopped = await cli(['engines', '--data', dataDir])
    assert.deepEqual([stopped.code, stopped.stderr.includes('no service is running')], [1, true])
    const orders: string[] = []
    const engine = {
      lane: 'a/b',
      state: 'ready',
      waiting: 0,
      running: 2,
      pinned: true,
      device: 'gpu0',
      needed_bytes: 24e9,
      held_bytes: 24e9,
      memory_source: 'measured',
      measured_bytes: 24e9,
      start_ms: [41_000],
      problem: null,
      last_lines: [],
    }
    const failed = {
      ...engine,
      lane: 'a/c',
      state: 'failed',
      problem: 'exit code 1',
      last_lines: ['loading', 'no memory'],
    }
    await scriptedService(t, dataDir, {
      engines: {
        list: () => [engine, failed],
        async order(lane, order, actor) {
          if (lane !== 'a/b') throw new Error('No engine of that lane.')
          orders.push(`${order} ${lane} ${actor.startsWith('command by ')}`)
        },
      },
    })
    const { stdout } = await cli(['engines', '--data', dataDir])
    assert.match(stdout, /a\/b +ready, pinned +2 +0 +gpu0 +24\.0 GB of 24\.0 GB, measured +41/)
    assert.ok(stdout.trimEnd().endsWith('\n\na/c printed last:\n  loading\n  no memory'), stdout)
    const json = await cli(['engines', '--data', dataDir, '--json'])
    assert.deepEqual(json.json(), { object: 'list', data: [engine, failed] })
    assert.equal((await cli(['engines', 'stop', 'a/b', '--data', dataDir])).code, 0)
    assert.deepEqual(orders, ['stop a/b true'])
    const unknown = await cli(['engines', 'stop', 'c/d', '--data', dataDir])
    assert.deepEqual([unknown.code, unknown.stderr.includes('No engine of that lane')], [1, true])
    assert.equal((await cli(['engines', 'end', 'a/b', '--data', dataDir])).code, 2)
    assert.equal((await cli(['engines', 'stop', '--data', dataDir])).code, 2)
  })
})
