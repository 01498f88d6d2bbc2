import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AuditStore } from '../../src/operate/audit/audit-store.ts'
import { CommandFailed, UsageError } from '../../src/cli/command.ts'
import { listingText, replicas } from '../../src/cluster/commands/replicas.ts'
import type { Coordination, Replica } from '../../src/cluster/coordination.ts'
import { replicaList } from '../../src/cluster/redis/replica-list.ts'
import { luaBeside, script } from '../../src/cluster/redis/script.ts'
import { replicaCommands, replicaRoutes } from '../../src/cluster/routes/replicas.ts'
import { plainView } from '../support/terminal.ts'
import { printed } from '../support/printed.ts'
import { ask, askDocumented } from '../support/route-answer.ts'
import { scriptedLink } from '../support/scripted-link.ts'
import { scriptedService } from '../support/scripted-service.ts'

/** The list of replicas, and how one of them is drained: over the API, with commands, and in Redis. */

const AT = Date.UTC(2026, 10, 18)
const replica = (name: string, changes: Partial<Replica> = {}): Replica => ({
  name,
  version: '1.2.3',
  startedAt: AT,
  epoch: 'e1',
  inFlightRequests: 3,
  queueDepth: 1200,
  journalBytes: 5,
  journalLagMs: 6.6,
  isDraining: false,
  ...changes,
})
const shown = {
  name: 'one',
  version: '1.2.3',
  started_at: '2026-11-18T00:00:00.000Z',
  epoch: 'e1',
  in_flight_requests: 3,
  queue_depth: 1200,
  journal_bytes: 5,
  journal_lag_ms: 7,
  draining: false,
}
const two = { ...shown, name: 'two', epoch: null, draining: true }

function coordinationOf(changes: Partial<Coordination> = {}): Coordination {
  const list = [replica('one'), replica('two', { epoch: null, isDraining: true })]
  return {
    replica: 'one',
    state: () => 'joined',
    replicas: () => 2,
    list: async () => list,
    drain: async (name) => list.some((it) => it.name === name),
    ...changes,
  }
}

describe('the replicas, for the operator', () => {
  it('are listed, with the one that answers', async () => {
    const { body } = await askDocumented(replicaRoutes({ coordination: coordinationOf() }), 'GET /admin/v1/replicas')
    assert.deepEqual(body, { object: 'list', coordination: 'joined', answered_by: 'one', data: [shown, two] })
    for (const state of ['alone', 'apart', 'stopped'] as const) {
      const routes = replicaRoutes({ coordination: coordinationOf({ state: () => state }) })
      assert.equal((await askDocumented(routes, 'GET /admin/v1/replicas')).body.coordination, state)
    }
  })

  it('are drained on record, if there is one of that name and Redis answers', async () => {
    const drain = (name: string, changes: Partial<Coordination> = {}) =>
      askDocumented(replicaRoutes({ coordination: coordinationOf(changes) }), `POST /admin/v1/replicas/${name}/drain`)
    const { body, recorded } = await drain('two')
    assert.deepEqual(body, { name: 'two', asked: true })
    assert.deepEqual(recorded, [{ action: 'drainReplica', subject: 'two', state: two }])
    await assert.rejects(drain('x'.repeat(201)), {
      code: 'not_found',
      message: `There is no replica "${'x'.repeat(200)}". There are: one, two.`,
      param: 'name',
    })
    await assert.rejects(drain('two', { drain: () => Promise.reject(new Error('cut')) }), {
      code: 'service_unavailable',
    })
    const unknown = { list: async () => [], drain: async () => true }
    const routes = replicaRoutes({ coordination: coordinationOf(unknown) })
    const { recorded: without } = await ask(routes, 'POST /admin/v1/replicas/one/drain')
    assert.deepEqual(without, [{ action: 'drainReplica', subject: 'one' }])
  })
})

/** The commands of a service with these replicas, and what is on record. */
async function service(t: TestContext, coordination = coordinationOf()) {
  const dataDir = mkdtempSync(join(tmpdir(), 'weir-replicas-'))
  t.after(() => rmSync(dataDir, { recursive: true, force: true }))
  const entries: object[] = []
  const audit = {
    beginAudit: async (entry: object) => (entries.push(entry), entries.length),
    endAudit: async () => {},
  } as unknown as AuditStore
  const commands = replicaCommands(coordination, { audit, clock: { now: () => AT, monotonic: () => 0 } })
  const { stop } = await scriptedService(t, dataDir, { replicas: commands })
  const run = (...args: readonly string[]) => printed(replicas, ...args, '--data', dataDir)
  return { dataDir, entries, run, stop }
}

describe('weir replicas', () => {
  it('lists them, and drains one on record', async (t) => {
    const { run, entries } = await service(t)
    const listed = await run('--json')
    const listing = { object: 'list', coordination: 'joined', answered_by: 'one', data: [shown, two] }
    assert.deepEqual(JSON.parse(listed.stdout), listing)
    assert.match((await run()).stdout, /^NAME .*\none .*\ntwo .*\n$/)
    assert.deepEqual(await run('drain', 'two'), {
      stdout: 'two takes no new work, and leaves when its requests have finished.\n',
      stderr: '',
      failure: undefined,
    })
    assert.partialDeepStrictEqual(entries, [{ action: 'drainReplica', subject: 'two' }])
    const { failure } = await run('drain', 'three')
    assert.ok(failure instanceof CommandFailed)
    assert.match(failure.message, /There is no replica "three"/)
  })

  it('waits until the replica has left', async (t) => {
    const left = [replica('one'), replica('two')]
    let asked = 0
    const list = async () => ((asked += 1) < 4 ? left : [replica('one')])
    const { run } = await service(t, coordinationOf({ list, drain: async () => true }))
    const { stdout } = await run('drain', 'two', '--wait')
    assert.equal(stdout, 'two has left.\n')
    assert.ok(asked >= 4)
    assert.deepEqual(JSON.parse((await run('drain', 'two', '--json')).stdout), {
      name: 'two',
      asked: true,
      left: false,
    })
  })

  it('needs a service and a name', async (t) => {
    const { run, stop, dataDir } = await service(t)
    for (const [args, message] of [
      [['--wait'], '--wait belongs to: weir replicas drain NAME'],
      [['drop', 'one'], 'there is no action "drop"; leave it out, or use: drain NAME'],
      [['drain'], 'give the name of the replica: weir replicas drain NAME'],
      [['drain', 'one', 'two'], 'unexpected argument "two"; put names with spaces in quotes'],
    ] as const) {
      const { failure } = await run(...args)
      assert.deepEqual([failure?.constructor, failure?.message], [UsageError, message])
    }
    await stop()
    for (const args of [[], ['drain', 'one']]) {
      const { failure } = await run(...args)
      assert.ok(failure instanceof CommandFailed)
      assert.match(failure.message, new RegExp(`^no service is running on ${dataDir};`))
    }
  })

  it('shows a table, and that others may be missing', () => {
    const text = (coordination: 'alone' | 'joined' | 'apart' | 'stopped') =>
      listingText({ coordination, data: [shown, two] }, AT + 61_000, plainView(80))
    const table = `NAME  VERSION  EPOCH    UP  IN FLIGHT  QUEUED  JOURNAL LAG  STATE
one   1.2.3    e1     61 s          3   1,200         7 ms  serving
two   1.2.3    -      61 s          3   1,200         7 ms  draining`
    assert.deepEqual([text('joined'), text('alone')], [table, table])
    const missing = `${table}\n\nRedis does not answer, so only the replica that was asked is listed.`
    assert.deepEqual([text('apart'), text('stopped')], [missing, missing])
    const ahead = listingText({ coordination: 'alone', data: [shown] }, AT - 5000, plainView(80))
    assert.match(ahead, / e1 +0 ms /)
  })
})

describe('the replicas that Redis knows', () => {
  const beside = (name: string) =>
    script(luaBeside(new URL('../../src/cluster/redis/replica-list.ts', import.meta.url).href, name))
  const keys = ['weir:{replicas}', 'weir:{replicas}:leases']

  it('are listed with what each reported', async () => {
    const { link, next, followers } = scriptedLink()
    const list = replicaList(link)
    assert.deepEqual(
      followers[0]?.scripts.map(({ sha }) => sha),
      [beside('listed').sha, beside('drain').sha],
    )
    const listed = list.list()
    const sent = next(beside('listed'))
    assert.deepEqual([sent.keys, sent.values], [keys, []])
    sent.answer(['one', '{"a":1}', 'two', '{}'])
    assert.deepEqual(await listed, [
      { name: 'one', about: { a: 1 } },
      { name: 'two', about: {} },
    ])
  })

  it('are asked to drain, if they are there', async () => {
    const { link, next } = scriptedLink()
    for (const [answer, isThere] of [
      [1, true],
      [0, false],
    ] as const) {
      const drained = replicaList(link).drain('two')
      const sent = next(beside('drain'))
      assert.deepEqual([sent.keys, sent.values], [keys, ['two']])
      sent.answer(answer)
      assert.equal(await drained, isThere)
    }
  })
})
