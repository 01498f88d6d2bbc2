import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { keptOperatorToken } from '../../src/workspaces/sessions/operator-token.ts'
import { refusalOf, stageConfig } from '../support/chat-stage.ts'
import { cli, type CliResult } from '../support/cli.ts'
import { startRedis, type RedisServer } from '../support/redis-server.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { eventually, gate } from '../support/waiting.ts'
import { weirProcess, type WeirProcess } from '../support/weir-process.ts'

interface Listing {
  readonly coordination: string
  readonly answered_by: string
  readonly data: readonly {
    readonly name: string
    readonly version: string
    readonly started_at: string
    readonly epoch: string | null
    readonly in_flight_requests: number
    readonly queue_depth: number
    readonly journal_lag_ms: number
    readonly draining: boolean
  }[]
}

/** The names of replicas contain the id of their process. */
const isOf = ({ pid }: WeirProcess, name: string): boolean => name.includes(`-${pid}-`)

describe('the replicas of a service', () => {
  let redis: RedisServer
  let engine: ScriptedEngine
  let services: WeirProcess[] = []

  before(async () => {
    redis = await startRedis()
    engine = await scriptedEngine()
    const config = stageConfig([engine.url], {
      limits: { max_concurrent_requests: 1, max_wait_ms: 60_000 },
      config: { coordination: redis.url, server: { port: 0, admin_port: 0, drain_ms: 60_000 } },
    })
    services = await Promise.all([weirProcess(config), weirProcess(config)])
    await eventually(
      'both have joined',
      async () => (await listing(services[0]!)).data.filter(({ epoch }) => epoch !== null).length === 2,
      30_000,
    )
  })
  after(async () => {
    for (const service of services) await service.remove()
    await engine.close()
    await redis.remove()
  })

  function operator({ adminUrl, dataDir }: WeirProcess, method: string, path: string): Promise<Response> {
    const authorization = `Bearer ${keptOperatorToken(dataDir)}`
    return fetch(`${adminUrl}/admin/v1/${path}`, { method, headers: { authorization } })
  }
  async function listing(service: WeirProcess): Promise<Listing> {
    return (await (await operator(service, 'GET', 'replicas')).json()) as Listing
  }
  const weir = (service: WeirProcess, ...args: string[]): Promise<CliResult> =>
    cli([...args, '--data', service.dataDir])
  const ready = (service: WeirProcess): Promise<Response> => fetch(service.base.replace('/api/v1', '/readyz'))

  it('are listed by each of them, with their load', async () => {
    const [one, other] = services as [WeirProcess, WeirProcess]
    const go = gate()
    engine.script = { tokens: ['a'], hold: { afterTokens: 0, until: go.opened } }
    const running = one.chat({ max_tokens: 4 })
    await eventually('it runs', () => engine.running === 1)
    const waiting = other.chat({ max_tokens: 4 })
    await eventually('both say what they have', async () => {
      const { data } = await listing(other)
      const found = (service: WeirProcess) => data.find(({ name }) => isOf(service, name))
      return found(one)?.in_flight_requests === 1 && found(other)?.queue_depth === 1
    })
    const listed = (await weir(one, 'replicas', '--json')).json<Listing>()
    assert.equal(listed.coordination, 'joined')
    assert.ok(isOf(one, listed.answered_by))
    assert.deepEqual(
      listed.data.map(({ name }) => name),
      (await listing(other)).data.map(({ name }) => name),
    )
    for (const { version, epoch, draining, started_at: at, journal_lag_ms: lag } of listed.data) {
      assert.match(version, /^\d+\.\d+\.\d+/)
      assert.match(epoch ?? '', /^\d{16}$/)
      assert.equal(draining, false)
      assert.ok(Date.parse(at) <= Date.now() && lag >= 0)
    }
    const { stdout } = await weir(one, 'replicas')
    assert.match(stdout, /NAME +VERSION +EPOCH +UP +IN FLIGHT +QUEUED +JOURNAL LAG +STATE/)
    go.open()
    await Promise.all([running, waiting].map(async (answer) => assert.equal((await answer).status, 200)))
  })

  it('[K3] are named when they do not confirm that a key is revoked', async () => {
    const [one, asleep] = services as [WeirProcess, WeirProcess]
    const created = await weir(one, 'keys', 'create', '--workspace', 'default', '--json')
    const { data } = await listing(one)
    const name = data.find((replica) => isOf(asleep, replica.name))?.name ?? ''
    asleep.signal('SIGSTOP')
    try {
      const answer = await operator(one, 'DELETE', `keys/${created.json<{ id: string }>().id}`)
      assert.deepEqual(((await answer.json()) as { unreached: string[] }).unreached, [name])
    } finally {
      asleep.signal('SIGCONT')
    }
    await eventually('it is back', async () => (await listing(one)).data.length === 2, 20_000)
    await eventually('no replica is missing', async () => {
      const answer = await operator(one, 'POST', 'accounts/reload')
      return ((await answer.json()) as { unreached: string[] }).unreached.length === 0
    })
  })

  it('[Q6] drain one by one: running requests finish, waiting and new ones get 503, and the replica leaves', async () => {
    const [leaving, staying] = services as [WeirProcess, WeirProcess]
    const go = gate()
    engine.script = { tokens: ['a', 'b'], hold: { afterTokens: 1, until: go.opened } }
    const running = await leaving.chat({ max_tokens: 4, stream: true })
    await eventually('it runs', () => engine.running === 1)
    const waiting = leaving.chat({ max_tokens: 4 })
    await eventually('the other waits', async () => (await listing(staying)).data.some((it) => it.queue_depth === 1))
    const name = (await listing(staying)).data.find((replica) => isOf(leaving, replica.name))?.name ?? ''

    const wrong = await weir(staying, 'replicas', 'drain', 'nobody')
    assert.deepEqual([wrong.code, wrong.stderr.includes(name)], [1, true])
    const waited = weir(staying, 'replicas', 'drain', name, '--wait', '--json')

    const refused = await refusalOf(await waiting)
    assert.deepEqual([refused.status, refused.code, refused.retryAfter], [503, 'service_unavailable', '2'])
    const late = await leaving.chat({ max_tokens: 4 })
    assert.equal(late.headers.get('connection'), 'close')
    const lateRefusal = await refusalOf(late)
    assert.deepEqual([lateRefusal.status, lateRefusal.retryAfter], [503, '2'])
    const authorization = `Bearer ${leaving.key}`
    const models = await refusalOf(await fetch(`${leaving.base}/models`, { headers: { authorization } }))
    assert.deepEqual([models.status, models.message], [503, 'This replica is draining. Try again.'])
    assert.match((await refusalOf(await ready(leaving))).message, /draining/)
    assert.equal((await fetch(leaving.base.replace('/api/v1', '/healthz'))).status, 200)
    assert.equal((await ready(staying)).status, 200)
    await eventually('the others see it', async () => (await listing(staying)).data.some(({ draining }) => draining))
    const again = await operator(staying, 'POST', `replicas/${name}/drain`)
    assert.deepEqual(await again.json(), { name, asked: true })
    assert.match((await weir(staying, 'replicas')).stdout, /draining/)

    go.open()
    assert.match(await running.text(), /\[DONE\]/)
    assert.deepEqual((await waited).json(), { name, asked: true, left: true })
    assert.equal(await leaving.ended(), 0)
    assert.deepEqual(
      (await listing(staying)).data.map((replica) => isOf(staying, replica.name)),
      [true],
    )
    engine.script = { tokens: ['a'] }
    assert.equal((await staying.chat({ max_tokens: 4 })).status, 200)
    const { data } = (await (await operator(staying, 'GET', 'audit-log')).json()) as {
      data: { action: string; subject: string; outcome: string; actor: string }[]
    }
    const drains = data.filter(({ action }) => action === 'drainReplica')
    assert.deepEqual(
      drains.map(({ subject, outcome }) => `${subject} ${outcome}`),
      [`${name} done`, `${name} done`, 'nobody refused'],
    )
    for (const { actor } of drains) assert.match(actor, /^(command by \S+ on |operator \(token\) from )/)
  })
})
