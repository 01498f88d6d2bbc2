import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { publishService } from '../../src/operate/running-service.ts'
import { isServiceRunning } from '../../src/store/sqlite/service-lock.ts'
import { leftAfterStop } from '../support/clean-stop.ts'
import { isAlive, model } from '../support/on-demand-stage.ts'
import { scriptedEngine } from '../support/scripted-engine.ts'
import { modelEntry } from '../support/weir.ts'

const NOTHING = { open: [], files: [], children: [] }

/** Every part that opens something, though nobody answers. */
const PARTS = {
  files: { kind: 'local', public_url: 'http://weir.test' },
  smtp: { host: '127.0.0.1', port: 1, from: 'weir@example.com' },
  images: { allowed_hosts: ['h'] },
  tracing: { endpoint: 'http://127.0.0.1:1' },
}

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'weir-stop-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A service that is killed leaves its socket, in a folder of its own, and the note of where it is. */
function socketOfKilled(folder: string): string {
  const socket = join(folder, 'private', 'weir.sock')
  for (const name of ['private', 'data']) mkdirSync(join(folder, name))
  writeFileSync(socket, '')
  publishService(join(folder, 'data'), { url: 'http://127.0.0.1:1', adminUrl: 'http://127.0.0.1:1', socket, pid: 1 })
  return socket
}

/** What only a running service has in its directory. */
const signsIn = (folder: string): readonly string[] =>
  readdirSync(join(folder, 'data')).filter((name) => /sock|service\.json|-wal|-shm/.test(name))

describe('a service that has stopped', () => {
  it('has left nothing open, no process, and no sign of a running service in its directory', async (t) => {
    const folder = folderOf(t)
    const killed = socketOfKilled(folder)
    const engine = await scriptedEngine()
    t.after(() => engine.close())
    const onDemand = await model('meta/started')
    const use = `{
      links: [await service.consoleLink(), await service.operatorConsoleLink()],
      answers: [
        await ask('/healthz'), await ask('/api/v1/models'), await ask('/api/v1/models', 'wrong'),
        await chat('meta/test-8b'), await chat('meta/test-8b', { stream: true }), await chat('meta/started'),
      ],
    }`
    const models = [modelEntry([`${engine.url}/v1`]), onDemand.entry]
    const left = await leftAfterStop(t, folder, { models, ...PARTS }, { use, environment: { ENGINE_KEY: 'x' } })
    const { used, ...rest } = left
    const { links, answers } = used as { links: string[]; answers: number[] }
    assert.ok(links.every((it) => /^http:.*\/console#link=./.test(it)))
    assert.deepEqual(answers, [200, 200, 401, 200, 200, 200])
    assert.deepEqual(rest, { refused: true, operatorRefused: true, ...NOTHING })
    assert.notDeepEqual(onDemand.pids(), [])
    assert.deepEqual(onDemand.pids().filter(isAlive), [])
    assert.equal(isServiceRunning(join(folder, 'data')), false)
    assert.deepEqual(signsIn(folder), [])
    assert.equal(existsSync(dirname(killed)), false, 'with what an earlier one had left that was killed')
  })
})

describe('a start that fails when everything else is open', () => {
  it('leaves nothing open, and no sign of a running service', async (t) => {
    const folder = folderOf(t)
    const taken = createServer().listen(0, '127.0.0.1')
    t.after(() => taken.close())
    await once(taken, 'listening')
    const server = { port: (taken.address() as AddressInfo).port, admin_port: 0 }
    const models = [modelEntry(['http://127.0.0.1:1'])]
    const environment = { ENGINE_KEY: 'x' }
    const { failure, ...rest } = await leftAfterStop(t, folder, { server, models, ...PARTS }, { environment })
    assert.match(failure ?? '', /EADDRINUSE/)
    assert.deepEqual(rest, NOTHING)
    assert.equal(isServiceRunning(join(folder, 'data')), false)
    assert.deepEqual(signsIn(folder), [])
  })
})
