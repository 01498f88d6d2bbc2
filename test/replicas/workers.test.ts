import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { stringify } from 'yaml'
import { journalFiles, journalFolder } from '../../src/ledger/journal/journal-files-on-disk.ts'
import { openJournal } from '../../src/ledger/journal/journal.ts'
import { borrowKey } from '../../src/operate/running-service.ts'
import { systemClock } from '../../src/shared/system-clock.ts'
import { workerDirectory } from '../../src/cluster/workers/directories.ts'
import { stageConfig } from '../support/chat-stage.ts'
import { cli, collect, startCli, startNote, type CliResult } from '../support/cli.ts'
import { commandLine } from '../support/command-line.ts'
import { sampleRow } from '../support/ledger-samples.ts'
import { inLongRun, runLength } from '../support/long-run.ts'
import { startPostgres, type PostgresServer } from '../support/postgres-server.ts'
import { rawClient } from '../support/raw-client.ts'
import { startRedis, type RedisServer } from '../support/redis-server.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { eventually, gate, within } from '../support/waiting.ts'

interface Listing {
  readonly data: readonly {
    readonly name: string
    readonly epoch: string | null
    readonly in_flight_requests: number
    readonly draining: boolean
  }[]
}

/** The names of replicas contain the id of their process. */
function pidOf(name: string): number {
  return Number(name.split('-').at(-2))
}

/** Two are enough for everything that is tested; a start of each costs more than a second of processor time. */
const WORKERS = runLength(2, 3)

/** What a worker leaves that is killed. */
async function leaveJournal(dataDir: string): Promise<void> {
  const files = journalFiles(journalFolder(dataDir))
  const journal = openJournal({ files, firstSegment: 1, clock: systemClock, grew() {} })
  await journal.prepare()
  await journal.settle(sampleRow('left', { workspaceId: 'another' }))
  journal.close()
}

describe('weir serve --workers', () => {
  let redis: RedisServer
  let postgres: PostgresServer
  let engine: ScriptedEngine
  let folder: string
  let child: ChildProcess
  let over: Promise<number | NodeJS.Signals>
  let note: ReturnType<typeof startNote>
  let key: string
  let log: () => string

  const weir = (...args: string[]): Promise<CliResult> =>
    commandLine([...args, '--config', join(folder, 'weir.yaml'), '--data', join(folder, 'data')])

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'weir-workers-'))
    ;[redis, postgres, engine] = await Promise.all([startRedis(), startPostgres(), scriptedEngine()])
    engine.script = { tokens: ['a', 'b'] }
    const config = stageConfig([engine.url], {
      limits: { max_concurrent_requests: 64, max_queue_depth: 200, max_wait_ms: 60_000 },
      config: {
        coordination: redis.url,
        database: await postgres.createDatabase(),
        log: { level: 'warn' },
        rate_limit: { requests_per_minute: 100_000, unauthenticated_per_minute: 100_000 },
        server: { port: 0, admin_port: 0, drain_ms: 60_000 },
      },
    })
    writeFileSync(join(folder, 'weir.yaml'), stringify(config))
    await leaveJournal(workerDirectory(join(folder, 'data'), WORKERS + 1))
    await start()
    key = note.firstKey ?? ''
  })

  async function start(): Promise<void> {
    child = startCli(
      ['serve', '--workers', String(WORKERS), '--config', join(folder, 'weir.yaml'), '--data', join(folder, 'data')],
      {},
    )
    const stdout = collect(child.stdout)
    log = collect(child.stderr)
    over = new Promise((resolve) => child.once('exit', (code, signal) => resolve(code ?? signal ?? 0)))
    await eventually('it runs', () => child.exitCode !== null || stdout().endsWith('\n'), 60_000)
    assert.equal(child.exitCode, null, log())
    note = startNote(stdout())
    await eventually('all workers have joined', async () => (await pids()).length === WORKERS, 60_000)
  }

  after(async () => {
    if (child.exitCode === null) {
      for (const pid of await pids()) process.kill(pid, 'SIGKILL')
      child.kill('SIGKILL')
    }
    await over
    await engine.close()
    await redis.remove()
    await postgres.remove()
    rmSync(folder, { recursive: true, force: true })
  })

  /** Of the workers that have joined. None can be told while the first worker, which answers commands, is replaced. */
  async function pids(): Promise<readonly number[]> {
    const { code, json } = await weir('replicas', '--json')
    if (code !== 0) return []
    return json<Listing>()
      .data.filter(({ epoch }) => epoch !== null)
      .map(({ name }) => pidOf(name))
      .toSorted((one, other) => one - other)
  }

  const ask = (body: object = {}, by = key): Promise<Response> =>
    fetch(`${note.api}/chat/completions`, {
      method: 'POST',
      // Every request has a connection of its own, so that each worker gets some.
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${by}`,
        connection: 'close',
      },
      body: JSON.stringify({ model: 'meta/test-8b', messages: [{ role: 'user', content: 'Hi' }], ...body }),
    })

  async function settledRequests(): Promise<number> {
    const { data } = (await weir('usage', '--workspace', 'default', '--json')).json<{ data: unknown[] }>()
    return data.length
  }

  it('delivers the journal of a worker that no longer exists', async () => {
    await eventually('it is delivered', () => log().includes('delivered the journal of a directory'))
    const left = journalFolder(workerDirectory(join(folder, 'data'), WORKERS + 1))
    assert.deepEqual(readdirSync(left), ['owner'])
  })

  it('shares one port, one key and one ledger among the workers, each with a directory of its own', async () => {
    const answers = await Promise.all(
      Array.from({ length: 60 }, async () => {
        const response = await ask()
        await response.text()
        return response.status
      }),
    )
    assert.deepEqual(new Set(answers), new Set([200]))
    const folders = readdirSync(join(folder, 'data')).filter((name) => name.startsWith('worker-'))
    const expected = Array.from({ length: WORKERS + 1 }, (_, index) => `worker-${index + 1}`)
    assert.deepEqual(folders.toSorted(), expected)
    assert.equal(await settledRequests(), 60)
  })

  it('gives each worker the same number of keep-alive connections', async (t) => {
    const served = async (): Promise<readonly number[]> => {
      const token = readFileSync(join(folder, 'data', 'operator-token'), 'utf8').trim()
      const response = await fetch(`${note.operator}/metrics`, { headers: { authorization: `Bearer ${token}` } })
      const counts = [
        ...(await response.text()).matchAll(/^weir_requests_total\{worker="(\d)",status="200"\} (\d+)$/gm),
      ]
      return counts.toSorted(([, one], [, other]) => Number(one) - Number(other)).map(([, , count]) => Number(count))
    }
    const before = await served()
    const callers = await Promise.all(Array.from({ length: 66 }, () => rawClient(note.api)))
    t.after(() => callers.forEach((caller) => caller.leave()))
    for (const caller of callers) {
      caller.send(`GET /api/v1/models HTTP/1.1\r\nHost: weir\r\nAuthorization: Bearer ${key}\r\n\r\n`)
    }
    await Promise.all(callers.map((caller) => caller.sees('200 OK')))
    const shares = (await served()).map((count, index) => count - (before[index] ?? 0))
    // One that is not scheduled for seconds would get fewer.
    assert.ok(Math.max(...shares) - Math.min(...shares) <= 8, String(shares))
    assert.equal(
      shares.reduce((sum, share) => sum + share, 0),
      66,
    )
  })

  it('accepts a console session at every worker', async () => {
    const session = (method: string, headers: object, body?: object): Promise<Response> =>
      fetch(note.api.replace('/api/v1', '/console/api/session'), {
        method,
        headers: { 'content-type': 'application/json', 'x-weir-console': '1', connection: 'close', ...headers },
        ...(body && { body: JSON.stringify(body) }),
      })
    const signedIn = await session('POST', {}, { key })
    assert.equal(signedIn.status, 200, await signedIn.text())
    const cookie = signedIn.headers.getSetCookie()[0]?.split(';', 1)[0] ?? ''
    const seen = await Promise.all(Array.from({ length: 30 }, async () => (await session('GET', { cookie })).status))
    assert.deepEqual(new Set(seen), new Set([200]))
    assert.equal((await session('DELETE', { cookie })).status, 200)
    const after = await Promise.all(Array.from({ length: 30 }, async () => (await session('GET', { cookie })).status))
    assert.deepEqual(new Set(after), new Set([401]))
  })

  it('adds up the requests that the workers refused', async () => {
    const refused = await Promise.all(
      Array.from({ length: 60 }, async () => {
        const response = await ask({ temperature: 9 })
        await response.text()
        return response.status
      }),
    )
    assert.deepEqual(new Set(refused), new Set([400]))
    const { groups, newest } = (await weir('usage', 'refused', '--json')).json<{
      groups: { workspace: string; error_code: string; requests: number }[]
      newest: object[]
    }>()
    assert.deepEqual(
      groups.map((it) => [it.workspace, it.error_code, it.requests]),
      [['default', 'invalid_value', 60]],
    )
    assert.equal(newest.length, 20)
  })

  it('has one listener for the operator, whose metrics cover all workers', async () => {
    const token = readFileSync(join(folder, 'data', 'operator-token'), 'utf8').trim()
    const response = await fetch(`${note.operator}/metrics`, { headers: { authorization: `Bearer ${token}` } })
    const text = await response.text()
    const served = [...text.matchAll(/^weir_outcomes_total\{worker="\d",.*\} (\d+)$/gm)]
    assert.equal(
      served.reduce((sum, [, count]) => sum + Number(count), 0),
      60,
    )
    assert.deepEqual(
      [...text.matchAll(/^weir_build_info\{worker="(\d)"/gm)].map(([, worker]) => worker),
      Array.from({ length: WORKERS }, (_, index) => `${index + 1}`),
    )
    assert.equal(text.match(/^# TYPE weir_requests_total /gm)?.length, 1)
  })

  it('[K3] refuses a key at every worker from the moment that a command on another machine has revoked it', async () => {
    const created = (await weir('keys', 'create', '--workspace', 'default', '--json')).json<{
      id: string
      key: string
    }>()
    const all = async (): Promise<ReadonlySet<number>> =>
      new Set(await Promise.all(Array.from({ length: 30 }, async () => (await ask({}, created.key)).status)))
    assert.deepEqual(await all(), new Set([200]))
    const elsewhere = ['--config', join(folder, 'weir.yaml'), '--data', join(folder, 'elsewhere')]
    // It names those that did not answer within a second; on a busy machine the next try reaches them.
    await eventually('every worker has answered', async () => {
      const { code, stderr } = await cli(['keys', 'revoke', created.id, ...elsewhere])
      assert.equal(code, 0, stderr)
      return stderr === ''
    })
    assert.deepEqual(await all(), new Set([401]))
  })

  it('lends a key for a chat at every worker', async () => {
    const lent = await borrowKey(join(folder, 'data'), 'default')
    assert.ok(lent && 'key' in lent)
    const all = async (): Promise<ReadonlySet<number>> =>
      new Set(await Promise.all(Array.from({ length: 30 }, async () => (await ask({}, lent.key)).status)))
    assert.deepEqual(await all(), new Set([200]))
    await lent.end()
    await eventually('it ends', async () => (await all()).has(401))
  })

  it('sends no connection to a worker that drains, and replaces it when it is killed, without the loss of a row', async (t) => {
    const before = await settledRequests()
    const go = gate()
    t.after(go.open)
    engine.script = { tokens: ['a', 'b'], hold: { afterTokens: 1, until: go.opened } }
    const lost = Array.from({ length: 30 }, async () => {
      try {
        return (await (await ask({ stream: true })).text()).includes('[DONE]')
      } catch {
        return false
      }
    })
    await eventually('all run', () => engine.running === 30)
    let busiest: Listing['data'][number] | undefined
    await eventually('the workers say what they have', async () => {
      const { data } = (await weir('replicas', '--json')).json<Listing>()
      busiest = data.toSorted((one, other) => other.in_flight_requests - one.in_flight_requests)[0]
      return data.reduce((sum, { in_flight_requests: count }) => sum + count, 0) === 30
    })
    const name = busiest?.name ?? ''
    assert.equal((await weir('replicas', 'drain', name)).code, 0)
    await eventually('it drains', async () => {
      const { data } = (await weir('replicas', '--json')).json<Listing>()
      return data.some((it) => it.name === name && it.draining)
    })
    const readiness = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const response = await fetch(note.api.replace('/api/v1', '/readyz'), { headers: { connection: 'close' } })
        await response.text()
        return response.status
      }),
    )
    assert.deepEqual(new Set(readiness), new Set([200]))
    const victim = pidOf(name)
    process.kill(victim, 'SIGKILL')
    await eventually(
      'another takes its place',
      async () => {
        const now = await pids()
        return now.length === WORKERS && !now.includes(victim)
      },
      60_000,
    )
    assert.match(log(), /a worker has ended/)
    go.open()
    engine.script = { tokens: ['a'] }
    const whole = (await Promise.all(lost)).filter(Boolean).length
    assert.equal(whole, 30 - (busiest?.in_flight_requests ?? 0), 'those of the others were answered')
    // Its successor has settled what it left.
    await eventually('every request has its row', async () => (await settledRequests()) === before + 30, 30_000)
    assert.equal((await weir('reconcile', '--json')).code, 0)
    assert.equal((await ask()).status, 200)
  })

  it(
    'replaces a worker that is drained, so that all can be restarted one by one while others serve',
    inLongRun,
    async () => {
      const over = new AbortController()
      const statuses = new Set<number>()
      const load = Promise.all(
        Array.from({ length: 8 }, async () => {
          while (!over.signal.aborted) {
            const response = await ask()
            await response.text()
            statuses.add(response.status)
            await sleep(200)
          }
        }),
      )
      load.catch(() => {})
      const old = (await weir('replicas', '--json')).json<Listing>().data
      try {
        for (const { name } of old) {
          assert.equal((await weir('replicas', 'drain', name, '--wait', '--json')).code, 0)
          await eventually('another takes its place', async () => (await pids()).length === WORKERS, 60_000)
        }
      } finally {
        over.abort()
      }
      await load
      const now = new Set((await weir('replicas', '--json')).json<Listing>().data.map(({ name }) => name))
      assert.ok(!old.some(({ name }) => now.has(name)))
      for (const status of statuses) assert.ok([200, 503].includes(status), `${status}`)
    },
  )

  it('names the process that has the port, if it is taken', async () => {
    const { port } = new URL(note.api)
    const elsewhere = ['--config', join(folder, 'weir.yaml'), '--data', join(folder, 'other'), '--port', port]
    const { code, stderr } = await cli(['serve', '--workers', '2', ...elsewhere])
    assert.equal(code, 1)
    assert.match(stderr, new RegExp(`port ${port} on 127.0.0.1 is in use .*--port`))
  })

  it('drains all of them on SIGTERM, and ends with status 0', async (t) => {
    const go = gate()
    t.after(go.open)
    engine.script = { tokens: ['a', 'b'], hold: { afterTokens: 1, until: go.opened } }
    const running = Array.from({ length: 9 }, async () => (await ask({ stream: true })).text())
    await eventually('all run', () => engine.running === 9)
    child.kill('SIGTERM')
    go.open()
    for (const text of await Promise.all(running)) assert.match(text, /\[DONE\]/)
    assert.equal(await within(60_000, 'it ends', over), 0)
  })

  it('finish running requests and end, if the process that started them is killed', inLongRun, async (t) => {
    await start()
    const workers = await pids()
    const go = gate()
    t.after(go.open)
    engine.script = { tokens: ['a', 'b'], hold: { afterTokens: 1, until: go.opened } }
    const running = Array.from({ length: 9 }, async () => (await ask({ stream: true })).text())
    await eventually('all run', () => engine.running === 9)
    child.kill('SIGKILL')
    await over
    go.open()
    for (const text of await Promise.all(running)) assert.match(text, /\[DONE\]/)
    const isAlive = (pid: number): boolean => {
      try {
        return process.kill(pid, 0)
      } catch {
        return false
      }
    }
    await eventually('they have ended', () => !workers.some(isAlive), 60_000)
  })
})

describe('weir serve --workers without what workers share', () => {
  it('reports what is missing, and how to start it', async () => {
    const { code, stderr } = await commandLine(['serve', '--workers', '2'])
    assert.equal(code, 1)
    assert.match(stderr, /--workers needs Redis .* and PostgreSQL .*docker run .*WEIR_REDIS_URL=.*WEIR_DATABASE_URL=/)
  })

  it('accepts only a number of workers', async () => {
    for (const wrong of ['0', 'many', '1.5', '1000']) {
      const { code, stderr } = await commandLine(['serve', '--workers', wrong])
      assert.deepEqual([code, stderr.includes('from 1 to 256')], [2, true])
    }
    assert.equal((await commandLine(['serve', '--worker', '1/2'])).code, 2)
  })
})
