import assert from 'node:assert/strict'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'undici'
import { keptOperatorToken } from '../../src/workspaces/sessions/operator-token.ts'
import type { Reloads } from '../../src/cluster/changes/change-feed.ts'
import {
  fetchMetrics,
  requestReload,
  borrowKey,
  cacheUseOf,
  consoleLinkOf,
  contradictedCountsOf,
  drainReplica,
  findService,
  publishService,
  refreshService,
  replicasOf,
  reportReconciliation,
  settleRunningService,
  settingsInForce,
  withdrawService,
} from '../../src/operate/running-service.ts'
import { listenForCommands } from '../../src/operate/command-socket.ts'
import { workerDirectory } from '../../src/cluster/workers/directories.ts'
import { takeServiceLock } from '../../src/store/sqlite/service-lock.ts'
import { commandLine } from '../support/command-line.ts'
import { scriptedService } from '../support/scripted-service.ts'
import { eventually, within } from '../support/waiting.ts'

function emptyFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'weir-note-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const modeOf = (file: string): number => statSync(file).mode & 0o777

interface Running {
  readonly dataDir: string
  readonly socket: string
  /** What it was asked to do. */
  readonly asked: string[]
  /** Leaves its note, as a service does when everything else is open. */
  publish(): void
  stop(): Promise<void>
}

const families = [{ name: 'weir_build_info' as const, samples: [{ label: '', value: 1 }] }]

const settings = {
  file: null,
  settings: [{ key: 'server.port', value: 8080, source: 'default' }],
  pending: [],
  problem: null,
}

/** Runs a service on the directory, as far as commands can see. */
async function run(t: TestContext, dataDir: string, changes: Partial<Reloads> = {}): Promise<Running> {
  const lock = takeServiceLock(dataDir)
  const asked: string[] = []
  const reloads: Reloads = {
    async accounts() {
      asked.push('accounts')
      return []
    },
    async catalog({ force }) {
      asked.push(force ? 'catalog by force' : 'catalog')
      return { models: 7, unreached: [], needsRestart: [] }
    },
    ...changes,
  }
  const { socket, close } = await listenForCommands(dataDir, {
    reloads,
    contradictedCounts: () => [],
    cacheUse: () => [],
    metrics: async () => families,
    async removeModel(slug) {
      if (slug === '') throw new Error('There is no such model.')
      return { removed: [slug], alsoGone: [], freedBytes: 7 }
    },
    engines: {
      list: () => [],
      async order(lane, order, actor) {
        if (lane !== 'a/b') throw new Error(`No engine of the lane "${lane}".`)
        asked.push(`${order} ${lane}, ${actor}`)
      },
    },
    replicas: {
      list: async () => ({ coordination: 'alone', data: [] }),
      async drain(name, actor) {
        if (name !== 'one') throw new Error(`There is no replica "${name}".`)
        asked.push(`drain ${name}, ${actor}`)
      },
    },
    reconciled: (problems) => void asked.push(`reconciled ${problems}`),
    settled: async () => void asked.push('settled'),
    settings: () => settings,
    async consoleLink(workspace) {
      if (workspace === 'missing') throw new Error('There is no workspace "missing".')
      return `http://127.0.0.1/console#link=${workspace ?? 'operator'}`
    },
    lendKey(workspace, key) {
      if (workspace !== 'acme') throw new Error(`There is no workspace "${workspace}".`)
      asked.push(key === undefined ? 'lend' : `lend ${key}`)
      return { key: 'weir_lent', end: () => void asked.push('end') }
    },
  })
  let stopped: Promise<void> | undefined
  const stop = (): Promise<void> =>
    (stopped ??= close().then(() => {
      withdrawService(dataDir)
      lock.close()
    }))
  t.after(() => within(10_000, 'the service stops', stop()))
  const url = 'http://127.0.0.1:9'
  return {
    dataDir,
    socket,
    asked,
    publish: () => publishService(dataDir, { url, adminUrl: url, socket, pid: process.pid }),
    stop,
  }
}

async function runPublished(t: TestContext, dataDir: string, changes?: Partial<Reloads>): Promise<Running> {
  const service = await run(t, dataDir, changes)
  service.publish()
  return service
}

/** Leaves the file of a socket, without a listener, as a killed process does. */
async function leaveSocket(path: string): Promise<void> {
  const server = createServer().listen(`${path}.listening`)
  await once(server, 'listening')
  renameSync(`${path}.listening`, path)
  server.close()
  await once(server, 'close')
  assert.ok(statSync(path).isSocket())
}

describe('the note of a running service', () => {
  it('has no secret, and is still readable only by its owner', async (t) => {
    const { dataDir } = await runPublished(t, emptyFolder(t))
    const file = join(dataDir, 'service.json')
    assert.equal(modeOf(file), 0o600)
    const note = JSON.parse(readFileSync(file, 'utf8')) as object
    assert.deepEqual(Object.keys(note), ['url', 'adminUrl', 'socket', 'pid'])
  })

  it('is valid only while the service holds its lock, and until it is withdrawn', async (t) => {
    const service = await runPublished(t, emptyFolder(t))
    const { dataDir } = service
    assert.equal(findService(dataDir)?.socket, service.socket)
    const note = readFileSync(join(dataDir, 'service.json'))
    await service.stop()
    assert.equal(findService(dataDir), undefined)
    writeFileSync(join(dataDir, 'service.json'), note)
    assert.equal(findService(dataDir), undefined, 'a service that was killed leaves its note behind')
    withdrawService(dataDir)
    assert.ok(!existsSync(join(dataDir, 'service.json')))
  })
})

describe('the socket for commands', () => {
  it('is in the data directory, accessible only to its owner, even if others can enter the directory', async (t) => {
    const dataDir = emptyFolder(t)
    chmodSync(dataDir, 0o755)
    const { socket } = await run(t, dataDir)
    assert.equal(socket, join(dataDir, 'weir.sock'))
    assert.ok(statSync(socket).isSocket())
    assert.equal(modeOf(socket), 0o600)
  })

  it('is in a private directory of its own when the path would be too long, and leaves nothing behind', async (t) => {
    const dataDir = join(emptyFolder(t), 'x'.repeat(150))
    mkdirSync(dataDir)
    const service = await runPublished(t, dataDir)
    assert.notEqual(dirname(service.socket), dataDir)
    assert.deepEqual([modeOf(dirname(service.socket)), modeOf(service.socket)], [0o700, 0o600])
    await refreshService(dataDir)
    assert.deepEqual(service.asked, ['accounts'])
    await service.stop()
    assert.ok(!existsSync(dirname(service.socket)))
  })

  it('leaves nothing behind either if the service ends before its note is there', async (t) => {
    const dataDir = join(emptyFolder(t), 'x'.repeat(150))
    mkdirSync(dataDir)
    const { socket, stop } = await run(t, dataDir)
    await stop()
    assert.ok(!existsSync(dirname(socket)))
  })

  it('replaces the socket that a killed service left behind, wherever it was', async (t) => {
    const dataDir = emptyFolder(t)
    const elsewhere = mkdtempSync(join(tmpdir(), 'weir-'))
    for (const stale of [join(dataDir, 'weir.sock'), join(elsewhere, 'weir.sock')]) {
      await leaveSocket(stale)
      const note = { url: '', adminUrl: '', socket: stale, pid: 1 }
      writeFileSync(join(dataDir, 'service.json'), JSON.stringify(note))
      withdrawService(dataDir)
      const service = await runPublished(t, dataDir)
      await refreshService(dataDir)
      assert.deepEqual(service.asked, ['accounts'])
      await service.stop()
    }
    assert.ok(!existsSync(elsewhere))
    const usual = join(dataDir, 'weir.sock')
    await leaveSocket(usual)
    assert.equal((await run(t, dataDir)).socket, usual, 'also without a note')
  })

  it('removes only the socket if the note of a killed service names a place with other files', (t) => {
    const [dataDir, other] = [emptyFolder(t), emptyFolder(t)]
    writeFileSync(join(other, 'precious'), '')
    writeFileSync(join(dataDir, 'service.json'), JSON.stringify({ socket: join(other, 'weir.sock') }))
    withdrawService(dataDir)
    assert.ok(existsSync(join(other, 'precious')))
  })

  it('accepts only the requests of commands', async (t) => {
    const { socket, asked } = await run(t, emptyFolder(t))
    const client = new Client('http://weir', { connect: { socketPath: socket } })
    t.after(() => client.close())
    for (const [method, path] of [
      ['GET', '/accounts'],
      ['POST', '/'],
      ['POST', '/catalog?force=false'],
      ['POST', '/admin/v1/keys'],
      ['GET', '/admin/v1/workspaces'],
      ['POST', '/metric-families'],
    ] as const) {
      const { statusCode, body } = await client.request({ method, path })
      await body.dump()
      assert.equal(statusCode, 404, `${method} ${path}`)
    }
    assert.deepEqual(asked, [])
  })
})

describe('a request of a command', () => {
  it('is answered as JSON, with a status of its own if it is refused', async (t) => {
    const { socket, asked } = await run(t, emptyFolder(t))
    const client = new Client('http://weir', { connect: { socketPath: socket } })
    t.after(() => client.close())
    const answers: Record<string, unknown> = {}
    for (const [method, path] of [
      ['POST', '/session?workspace=missing'],
      ['POST', '/drain?name=other'],
      ['POST', '/drain?name=one'],
      ['POST', '/engine-order?order=stop'],
      ['POST', '/engine-order?lane=a/b&order=stop'],
      ['POST', '/engine-order?lane=a/b&order=stop&actor=me'],
      ['POST', '/remove-model?model=a/b'],
      ['POST', '/remove-model'],
      ['POST', '/reconciled?problems=2'],
      ['POST', '/console-link?workspace=missing'],
      ['POST', '/console-link'],
      ['GET', '/counts'],
      ['POST', '/other'],
    ] as const) {
      const { statusCode, headers, body } = await client.request({ method, path })
      assert.equal(headers['content-type'], 'application/json', path)
      answers[path] = [statusCode, await body.json()]
    }
    assert.deepEqual(answers, {
      '/session?workspace=missing': [400, { error: 'There is no workspace "missing".' }],
      '/drain?name=other': [400, { error: 'There is no replica "other".' }],
      '/drain?name=one': [200, { asked: true }],
      '/engine-order?order=stop': [400, { error: 'No engine of the lane "".' }],
      '/engine-order?lane=a/b&order=stop': [200, { given: true }],
      '/engine-order?lane=a/b&order=stop&actor=me': [200, { given: true }],
      '/remove-model?model=a/b': [200, { removed: ['a/b'], alsoGone: [], freedBytes: 7 }],
      '/remove-model': [409, { error: 'There is no such model.' }],
      '/reconciled?problems=2': [200, {}],
      '/console-link?workspace=missing': [400, { error: 'There is no workspace "missing".' }],
      '/console-link': [200, { url: 'http://127.0.0.1/console#link=operator' }],
      '/counts': [200, { counts: [] }],
      '/other': [404, { error: 'there is nothing at POST /other' }],
    })
    assert.deepEqual(asked, ['drain one, command', 'stop a/b, command', 'stop a/b, me', 'reconciled 2'])
  })

  it('leaves no connection to the service', async (t) => {
    const dataDir = emptyFolder(t)
    const lock = takeServiceLock(dataDir)
    const socket = join(dataDir, 'weir.sock')
    const body = '{"error":"no"}'
    const head = `HTTP/1.1 200 OK\r\nKeep-Alive: timeout=600\r\nContent-Length: ${body.length}\r\n\r\n`
    const service = createServer((connection) => connection.once('data', () => connection.write(head + body)))
    service.listen(socket)
    await once(service, 'listening')
    t.after(() => lock.close())
    publishService(dataDir, { url: '', adminUrl: '', socket, pid: process.pid })
    const closed = once(service, 'close')
    await replicasOf(dataDir)
    assert.deepEqual(await borrowKey(dataDir, 'acme'), { error: 'no' })
    service.close()
    // It closes as soon as no connection is left.
    await within(60_000, 'the service closes', closed)
  })
})

describe('a command', () => {
  it('notifies the running service of a change, waits until it is applied, and gets the replicas that did not answer', async (t) => {
    const events: string[] = []
    const { dataDir } = await runPublished(t, emptyFolder(t), {
      async accounts() {
        await sleep(200)
        events.push('taken in')
        return ['replica-2']
      },
    })
    assert.deepEqual(await refreshService(dataDir), ['replica-2'])
    events.push('the command ends')
    assert.deepEqual(events, ['taken in', 'the command ends'])
  })

  it('names the replicas where the change may not be in force yet', async (t) => {
    const { dataDir } = await runPublished(t, emptyFolder(t), { accounts: async () => ['replica-2', 'replica-3'] })
    const { code, stderr } = await commandLine(['workspaces', 'create', 'acme', '--data', dataDir])
    assert.deepEqual([code, stderr.match(/replica-\d/g)], [0, ['replica-2', 'replica-3']])
    assert.match(stderr, /did not answer, and takes the change in when it can/)
  })

  it('gets a link to a console, or the reason why there is none', async (t) => {
    const { dataDir } = await runPublished(t, emptyFolder(t))
    assert.deepEqual(await consoleLinkOf(dataDir, undefined), { url: 'http://127.0.0.1/console#link=operator' })
    assert.deepEqual(await consoleLinkOf(dataDir, 'a&b'), { url: 'http://127.0.0.1/console#link=a&b' })
    assert.deepEqual(await consoleLinkOf(dataDir, 'missing'), { error: 'There is no workspace "missing".' })
    assert.equal(await consoleLinkOf(emptyFolder(t), undefined), undefined)
  })

  it('gets the metrics of the service on its own directory', async (t) => {
    const { dataDir, stop } = await runPublished(t, emptyFolder(t))
    assert.deepEqual(await fetchMetrics(dataDir), families)
    await stop()
    assert.equal(await fetchMetrics(dataDir), undefined)
  })

  it('reports the result of a reconciliation, and does not fail without a service', async (t) => {
    const { dataDir, asked, stop } = await runPublished(t, emptyFolder(t))
    await reportReconciliation(dataDir, 3)
    assert.deepEqual(asked, ['reconciled 3'])
    await stop()
    await reportReconciliation(dataDir, 0)
  })

  it('drains a replica, or reports why it cannot', async (t) => {
    const { dataDir, asked } = await runPublished(t, emptyFolder(t))
    assert.deepEqual(await drainReplica(dataDir, { name: 'one', actor: 'command by me' }), { asked: true })
    assert.deepEqual(await drainReplica(dataDir, { name: 'a&b?', actor: 'command by me' }), {
      error: 'There is no replica "a&b?".',
    })
    assert.deepEqual(asked, ['drain one, command by me'])
    assert.deepEqual(await replicasOf(dataDir), { coordination: 'alone', data: [] })
    assert.equal(await replicasOf(emptyFolder(t)), undefined)
  })

  it('is answered by any of its workers, whichever is being replaced', async (t) => {
    const dataDir = emptyFolder(t)
    const [first, second] = [workerDirectory(dataDir, 1), workerDirectory(dataDir, 2)]
    for (const directory of [first, second]) mkdirSync(directory)
    // The successor of the first holds its lock, and has not replaced its note yet.
    const killed = await runPublished(t, first)
    const note = readFileSync(join(first, 'service.json'))
    await killed.stop()
    writeFileSync(join(first, 'service.json'), note)
    const lock = takeServiceLock(first)
    t.after(() => lock.close())
    const { asked } = await runPublished(t, second)
    assert.deepEqual(await replicasOf(dataDir), { coordination: 'alone', data: [] })
    assert.deepEqual(await drainReplica(dataDir, { name: 'one', actor: 'command by me' }), { asked: true })
    assert.deepEqual(await settingsInForce(dataDir), settings)
    assert.deepEqual(await cacheUseOf(dataDir), [])
    assert.deepEqual(asked, ['drain one, command by me'])
  })

  it('times out when the service accepts a request and does not answer', async (t) => {
    const dataDir = emptyFolder(t)
    const socket = join(dataDir, 'weir.sock')
    const silent = createServer((connection) => connection.resume()).listen(socket)
    await once(silent, 'listening')
    const lock = takeServiceLock(dataDir)
    t.after(() => {
      lock.close()
      silent.close()
    })
    publishService(dataDir, { url: '', adminUrl: '', socket, pid: process.pid })
    assert.equal(await fetchMetrics(dataDir), undefined)
    const connections = await new Promise((resolve) => silent.getConnections((_error, count) => resolve(count)))
    assert.equal(connections, 0, 'the connection is closed')
  })

  it('waits 20 s for an answer, but 2 s for metrics, and a key that was lent has no limit', async (t) => {
    const dispatched = t.mock.method(Client.prototype, 'dispatch')
    const { dataDir } = await runPublished(t, emptyFolder(t))
    await replicasOf(dataDir)
    await fetchMetrics(dataDir)
    const lent = await borrowKey(dataDir, 'acme')
    assert.ok(lent && 'end' in lent)
    await lent.end()
    assert.deepEqual(
      dispatched.mock.calls.map(({ arguments: [{ path, headersTimeout, bodyTimeout }] }) => [
        path,
        headersTimeout,
        bodyTimeout,
      ]),
      [
        ['/replicas', 20_000, 20_000],
        ['/metric-families', 2000, 2000],
        ['/session?workspace=acme', 20_000, 0],
      ],
    )
  })

  it('makes it read the catalog again, with force only on request', async (t) => {
    const { dataDir, asked } = await runPublished(t, emptyFolder(t))
    assert.deepEqual(await requestReload(dataDir, 'catalog'), {
      reloaded: true,
      models: 7,
      unreached: [],
      needs_restart: [],
    })
    assert.deepEqual(await requestReload(dataDir, 'catalog', { force: true }), {
      reloaded: true,
      models: 7,
      unreached: [],
      needs_restart: [],
    })
    assert.deepEqual(asked, ['catalog', 'catalog by force'])
  })

  it('fails if the service cannot apply the change', async (t) => {
    const { dataDir } = await runPublished(t, emptyFolder(t), {
      accounts: () => Promise.reject(new Error('the disk is broken')),
    })
    await assert.rejects(refreshService(dataDir), /did not take the change \(the disk is broken\); restart it/)
  })

  it('does not wait when no service is running', async (t) => {
    const dataDir = emptyFolder(t)
    await refreshService(dataDir)
    const service = await runPublished(t, dataDir)
    const note = readFileSync(join(dataDir, 'service.json'))
    await service.stop()
    writeFileSync(join(dataDir, 'service.json'), note)
    await refreshService(dataDir)
    assert.deepEqual(service.asked, [])
  })

  it('waits for a service that is starting, because it may have read the old state', async (t) => {
    const service = await run(t, emptyFolder(t))
    let isOver = false
    const refreshed = refreshService(service.dataDir).then(() => (isOver = true))
    await sleep(300)
    assert.equal(isOver, false)
    service.publish()
    await refreshed
    assert.deepEqual(service.asked, ['accounts'])
  })

  it('gives up after 30 s if the service neither answers nor ends', async (t) => {
    const { dataDir } = await run(t, emptyFolder(t))
    const times = [0, 30_000, 30_001]
    t.mock.method(performance, 'now', () => times.shift() ?? assert.fail('it waits on'))
    await assert.rejects(refreshService(dataDir), { message: 'the running service does not answer; restart it' })
    assert.deepEqual(times, [])
  })

  it('waits for a service that is stopping, and then has none to notify', async (t) => {
    const service = await run(t, emptyFolder(t))
    const refreshed = refreshService(service.dataDir)
    await sleep(100)
    await service.stop()
    await refreshed
    assert.deepEqual(service.asked, [])
  })
})

describe('the lock of a service', () => {
  it('is held by one service at a time, and free again when it is released', (t) => {
    const dataDir = emptyFolder(t)
    const lock = takeServiceLock(dataDir)
    assert.throws(() => takeServiceLock(dataDir), /locked/)
    lock.close()
    takeServiceLock(dataDir).close()
  })
})

describe('an operator token that is not configured', () => {
  it('is created once, hard to guess, in a file that only its owner can read', (t) => {
    const dataDir = emptyFolder(t)
    const token = keptOperatorToken(dataDir)
    assert.match(token, /^weir_operator_[0-9a-f]{64}$/)
    assert.equal(keptOperatorToken(dataDir), token)
    assert.equal(modeOf(join(dataDir, 'operator-token')), 0o600)
  })
})

describe('a key that a service lends', () => {
  it('ends with the command that uses it, however that ends', async (t) => {
    const service = await run(t, emptyFolder(t))
    service.publish()
    const lent = await borrowKey(service.dataDir, 'acme')
    assert.ok(lent && 'key' in lent)
    assert.deepEqual([lent.key, service.asked], ['weir_lent', ['lend']])
    // All that a process leaves behind when it is killed: a closed connection.
    await lent.end()
    await eventually('the key ends', () => service.asked.at(-1) === 'end')
    assert.deepEqual(await borrowKey(service.dataDir, 'missing'), { error: 'There is no workspace "missing".' })
  })

  it('ends with the service, which does not wait for the command', async (t) => {
    const service = await run(t, emptyFolder(t))
    service.publish()
    const lent = await borrowKey(service.dataDir, 'acme')
    assert.ok(lent && 'key' in lent)
    try {
      await within(10_000, 'the service stops', service.stop())
    } finally {
      await lent.end()
    }
    await eventually('the key ends', () => service.asked.at(-1) === 'end')
  })
})

describe('the end of a service', () => {
  it('ends the keys that it has lent, and not the command that uses one', async (t) => {
    const dispatched = t.mock.method(Client.prototype, 'dispatch')
    const service = await runPublished(t, emptyFolder(t))
    const lent = await borrowKey(service.dataDir, 'acme')
    assert.ok(lent && 'end' in lent)
    const [call] = dispatched.mock.calls
    const disconnected = once(call?.this as Client, 'disconnect')
    await within(10_000, 'the service stops', service.stop())
    await within(10_000, 'the connection ends', disconnected)
    assert.deepEqual(service.asked, ['lend', 'end'])
    await lent.end()
  })
})

describe('the workers of a service', () => {
  it('lend a key even while one of them is being replaced', async (t) => {
    const dataDir = emptyFolder(t)
    const [first, second] = [workerDirectory(dataDir, 1), workerDirectory(dataDir, 2)]
    for (const directory of [first, second]) mkdirSync(directory)
    const { asked } = await runPublished(t, first)
    const lock = takeServiceLock(second)
    t.after(() => lock.close())
    publishService(second, { url: '', adminUrl: '', socket: join(second, 'weir.sock'), pid: 1 })
    const lent = await borrowKey(dataDir, 'acme')
    assert.ok(lent && 'end' in lent)
    await lent.end()
    await eventually('the key ends', () => asked.at(-1) === 'end')
  })

  it('all lend the same key, and all settle on request', async (t) => {
    const dataDir = emptyFolder(t)
    const workers = await Promise.all(
      [1, 2].map(async (number) => {
        mkdirSync(workerDirectory(dataDir, number))
        return runPublished(t, workerDirectory(dataDir, number))
      }),
    )
    const lent = await borrowKey(dataDir, 'acme')
    assert.ok(lent && 'key' in lent)
    assert.equal(await settleRunningService(dataDir), true)
    await lent.end()
    for (const { asked } of workers) {
      await eventually('the key ends', () => asked.at(-1) === 'end')
      assert.deepEqual(asked, [asked === workers[0]?.asked ? 'lend' : 'lend weir_lent', 'settled', 'end'])
    }
  })
})

describe('the rows of a service', () => {
  it('are in the database only when every worker has settled, of those that do not end meanwhile', async (t) => {
    const dataDir = emptyFolder(t)
    const [first, second] = [workerDirectory(dataDir, 1), workerDirectory(dataDir, 2)]
    for (const directory of [first, second]) mkdirSync(directory)
    const { asked } = await runPublished(t, first)
    const ending = takeServiceLock(second)
    const settled = settleRunningService(dataDir)
    await eventually('the first one is asked', () => asked.length === 1)
    ending.close()
    assert.equal(await settled, true)
    await scriptedService(t, second, { settled: () => Promise.reject(new Error('no database')) })
    await assert.rejects(settleRunningService(dataDir), {
      message: 'the running service cannot bring its rows into the database (no database); see its log',
    })
  })
})

describe('what a service has counted', () => {
  it('is put together from all of its workers', async (t) => {
    const dataDir = emptyFolder(t)
    const usual = { kind: 'vllm', answers: 1, counted: 9, least: 1, most: 2 } as const
    for (const number of [1, 2]) {
      const directory = workerDirectory(dataDir, number)
      mkdirSync(directory)
      await scriptedService(t, directory, { contradictedCounts: () => [{ lane: `a/${number}`, ...usual }] })
    }
    const counts = await contradictedCountsOf(dataDir)
    assert.deepEqual(counts.map(({ lane }) => lane).toSorted(), ['a/1', 'a/2'])
    assert.deepEqual(await contradictedCountsOf(emptyFolder(t)), [])
  })
})

describe('the settings in force', () => {
  it('are those of the running service, and of no other source', async (t) => {
    const service = await run(t, emptyFolder(t))
    assert.equal(await settingsInForce(service.dataDir), undefined)
    service.publish()
    assert.deepEqual(await settingsInForce(service.dataDir), settings)
  })
})
