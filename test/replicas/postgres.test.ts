import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { stageConfig } from '../support/chat-stage.ts'
import { commandLine } from '../support/command-line.ts'
import { startPostgres, type PostgresServer } from '../support/postgres-server.ts'
import { startRedis, type RedisServer } from '../support/redis-server.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { eventually } from '../support/waiting.ts'
import { weirProcess, type WeirProcess } from '../support/weir-process.ts'

/** Whole services in processes of their own, with their journals, on one PostgreSQL. */
describe('several services on one PostgreSQL', () => {
  let postgres: PostgresServer
  let redis: RedisServer
  let engine: ScriptedEngine
  let environment: { readonly WEIR_DATABASE_URL: string }
  let services: readonly WeirProcess[]
  let key: string
  const elsewhere = mkdtempSync(join(tmpdir(), 'weir-elsewhere-'))

  before(async () => {
    postgres = await startPostgres()
    engine = await scriptedEngine()
    engine.script = { tokens: ['a', 'b'] }
    environment = { WEIR_DATABASE_URL: await postgres.createDatabase() }
    redis = await startRedis()
    const config = stageConfig([engine.url], { config: { coordination: redis.url, log: { level: 'info' } } })
    // All of them find an empty database.
    const starts = await Promise.allSettled([0, 1, 2].map(() => weirProcess(config, environment)))
    services = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []))
    assert.equal(services.length, 3, JSON.stringify(starts))
    key = services.map((service) => service.key).join('')
  })
  after(async () => {
    for (const service of services) await service.remove()
    await engine.close()
    await redis.remove()
    await postgres.remove()
    rmSync(elsewhere, { recursive: true, force: true })
  })

  async function idOf(answer: Promise<Response>): Promise<string> {
    const response = await answer
    assert.equal(response.status, 200, await response.text())
    return response.headers.get('x-request-id') ?? ''
  }

  const ask = ({ base }: WeirProcess): Promise<Response> =>
    fetch(`${base}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
      body: JSON.stringify({ model: 'meta/test-8b', messages: [{ role: 'user', content: 'Hi' }] }),
    })

  /** As a command on another machine sees it, which has nothing but the configuration. */
  const command = (...args: string[]) => commandLine([...args, '--json', '--data', elsewhere], { environment })

  const idsInLedger = async (): Promise<readonly string[]> =>
    (await services[0]!.ledger()).map(({ requestId }) => requestId)

  /** What a service that is ready says of the database. */
  const databaseOf = async ({ base }: WeirProcess): Promise<string> => {
    const response = await fetch(base.replace('/api/v1', '/readyz'))
    assert.equal(response.status, 200)
    return ((await response.json()) as { database: string }).database
  }
  const allReport = async (state: string): Promise<boolean> =>
    (await Promise.all(services.map(databaseOf))).every((it) => it === state)

  it('start at the same time, and create one set of tables, one workspace and one price', async () => {
    assert.match(key, /^weir_\w+$/, 'one of them made the first key')
    const { data } = (await command('workspaces', 'list')).json<{ data: readonly object[] }>()
    assert.equal(data.length, 1)
    await eventually(
      'all know the key and have joined',
      async () => {
        const states = await Promise.all(services.map(async (service) => (await ask(service)).status))
        return states.every((status) => status === 200)
      },
      20_000,
    )
  })

  it('have one ledger and the same keys, and every command sees them from anywhere', async () => {
    const ids = await Promise.all(services.map((service) => idOf(ask(service))))
    await eventually('the rows are there', async () => {
      const found = await idsInLedger()
      return ids.every((id) => found.includes(id))
    })
    const usage = (await command('usage', '--workspace', 'default')).json<{ total_pico_aud: string }>()
    const amounts = (await services[0]!.ledger()).map(({ amount }) => amount)
    assert.equal(
      BigInt(usage.total_pico_aud),
      amounts.reduce((sum, amount) => sum + amount, 0n),
    )
    assert.match((await command('backup', join(elsewhere, 'backup'))).stderr, /back it up with pg_dump\n$/)
    const { problems } = (await command('reconcile')).json<{ problems: readonly unknown[] }>()
    assert.deepEqual(problems, [])
    const versions = new Set((await services[0]!.ledger()).map(({ priceVersion }) => priceVersion))
    assert.equal(versions.size, 1)
  })

  it('keep serving without the database, and deliver their rows when it is back', async () => {
    const before = new Set(await idsInLedger())
    await postgres.kill()
    const ids = await Promise.all([...services, ...services, ...services].map((service) => idOf(ask(service))))
    await eventually('all are ready, and say that the database is away', () => allReport('away'))
    await eventually('the log tells', () =>
      services.every((service) => service.log().includes('the database takes no rows')),
    )
    assert.ok(
      services.every((service) => !service.log().includes('never-shown')),
      'no password in the log',
    )
    await postgres.start()
    await eventually('the rows are there', async () => {
      const found = await idsInLedger().catch((): readonly string[] => [])
      return ids.every((id) => found.includes(id))
    })
    const found = (await idsInLedger()).filter((id) => !before.has(id))
    assert.deepEqual(found.toSorted(), ids.toSorted(), 'each once')
    await eventually('the log tells that it is over', () =>
      services.every((service) => service.log().includes('the database takes rows again')),
    )
    await eventually('the database is up', () => allReport('up'))
  })

  it('refuse to start without the database, in one line with advice and without the password', async () => {
    await postgres.kill()
    try {
      const { code, stderr } = await commandLine(['serve', '--data', join(elsewhere, 'new')], { environment })
      assert.equal(code, 1)
      assert.match(
        stderr,
        /^weir: postgres:\/\/127\.0\.0\.1:\d+\/weir_1: PostgreSQL does not answer \(.*\): start it, or [^\n]*\n$/,
      )
      assert.ok(!stderr.includes('never-shown'))
      const { findings } = JSON.parse((await command('doctor')).stdout) as {
        findings: { name: string; detail: string }[]
      }
      const detail = findings.find(({ name }) => name === 'database')?.detail ?? ''
      assert.match(detail, /^postgres:\/\/127\.0\.0\.1:\d+\/weir_1: PostgreSQL does not answer/)
      const listed = await command('workspaces', 'list')
      assert.match(listed.stderr, /PostgreSQL does not answer/)
    } finally {
      await postgres.start()
    }
  })
})
