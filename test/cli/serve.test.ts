import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { stringify } from 'yaml'
import { UsageError } from '../../src/cli/command.ts'
import { listenFailure } from '../../src/cli/serve/listen-failure.ts'
import { requireShared, workersOf } from '../../src/cli/serve/serve-workers.ts'
import { serve } from '../../src/cli/serve/serve.ts'
import { ConfigError } from '../../src/shared/checked-yaml.ts'
import { findService } from '../../src/operate/running-service.ts'
import { printed, printedOnTerminal, type Printed } from '../support/printed.ts'
import { eventually } from '../support/waiting.ts'
import { modelEntry } from '../support/weir.ts'

/** weir serve in this process: without what only a process of its own has. */
function stage(t: TestContext, server: object = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'weir-serve-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'weir.yaml')
  const write = (content: object): void => writeFileSync(file, stringify(content))
  const content = { log: { level: 'silent' }, models: [modelEntry(['http://127.0.0.1:9/v1'])] }
  write({ server: { port: 0, admin_port: 0, ...server }, ...content })
  const options = ['--config', file, '--data', join(folder, 'data')]
  return {
    dataDir: join(folder, 'data'),
    file,
    write,
    options,
    run: (...args: readonly string[]): Promise<Printed> => printed(serve, ...args, ...options),
  }
}

async function heldPort(t: TestContext): Promise<number> {
  const holder = createServer().listen(0, '127.0.0.1')
  await once(holder, 'listening')
  t.after(() => holder.close())
  return (holder.address() as AddressInfo).port
}

describe('weir serve', () => {
  /** What it prints until a signal stops it. */
  async function stopped<Result>(dataDir: string, run: () => Promise<Result>): Promise<Result> {
    const before = process.listeners('SIGTERM')
    const running = run()
    await eventually('it runs', () => findService(dataDir) !== undefined, 60_000)
    await eventually('it waits for signals', () => process.listenerCount('SIGTERM') > before.length, 60_000)
    for (const listener of process.listeners('SIGTERM')) if (!before.includes(listener)) listener('SIGTERM')
    const result = await running
    for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.removeAllListeners(name)
    assert.equal(findService(dataDir), undefined)
    return result
  }

  it('runs until a signal stops it, and reports once where it listens', async (t) => {
    const { dataDir, options, run } = stage(t)
    const sent: unknown[] = []
    const { send } = process
    process.send = (message: unknown) => sent.push(message) > 0
    const { stdout, failure } = await stopped(dataDir, () => run('--json'))
    Object.assign(process, { send })
    assert.deepEqual([failure, sent], [undefined, []], 'only a worker reports to another process')
    const lines = stdout.trimEnd().split('\n')
    assert.equal(lines.length, 1)
    const said = JSON.parse(lines[0] ?? '') as { readonly msg: string; readonly data_dir: string }
    assert.deepEqual([said.msg, said.data_dir], ['Weir is running', dataDir])
    assert.ok(existsSync(join(dataDir, 'weir.db')))
    const again = await stopped(dataDir, () => printedOnTerminal(80, serve, ...options))
    assert.match(again, /\n {2}Console {3}http:\S+\/console#link=\w+/)
    assert.ok(again.includes(`\n    npx weir keys create --workspace default ${options.join(' ')}\n`), again)
  })

  it('reports which port is taken, which setting chose it and what to do', async (t) => {
    const port = await heldPort(t)
    const failed = async ({ run }: ReturnType<typeof stage>, ...args: readonly string[]): Promise<string> => {
      const { failure, stdout } = await run('--json', ...args)
      assert.equal(stdout, '')
      assert.ok(failure instanceof ConfigError, String(failure))
      return failure.message
    }
    const inUse = `port ${port} on 127.0.0.1 is in use (the port comes from`
    const choices = 'stop the program that uses it, or choose another port with'
    const publicPorts = '--port N, WEIR_PORT or server.port'
    const named = stage(t)
    assert.equal(await failed(named, '--port', String(port)), `${inUse} --port); ${choices} ${publicPorts}`)
    const written = stage(t, { port })
    assert.equal(await failed(written), `${inUse} ${written.file}:2, server.port); ${choices} ${publicPorts}`)
    const admin = stage(t, { admin_port: port })
    assert.equal(
      await failed(admin),
      `${inUse} ${admin.file}:3, server.admin_port); ${choices} WEIR_ADMIN_PORT or server.admin_port`,
    )
    const host = stage(t, { host: '192.0.2.1', port })
    assert.equal(
      await failed(host),
      `192.0.2.1 is not an address of this machine (it comes from ${host.file}:4, server.host); correct server.host`,
    )
    const adminHost = stage(t, { admin_host: '192.0.2.1', admin_port: port })
    assert.equal(
      await failed(adminHost),
      `192.0.2.1 is not an address of this machine (it comes from ${adminHost.file}:4, server.admin_host); correct server.admin_host`,
    )
  })

  it('lists every mistake of its file at once, and refuses invalid options', async (t) => {
    const { run, write } = stage(t)
    const misused = async (...args: readonly string[]): Promise<readonly unknown[]> => {
      const { failure } = await run(...args)
      return [failure?.constructor, failure?.message]
    }
    assert.deepEqual(await misused('--worker', '1/2'), [UsageError, '--worker is what --workers starts'])
    assert.deepEqual(await misused('--workers', '0'), [UsageError, '--workers must be a number from 1 to 256'])
    assert.deepEqual(await misused('more'), [UsageError, 'unexpected argument "more"'])
    const [error, message] = await misused('--workers', '2')
    assert.equal(error, ConfigError)
    assert.match(String(message), /^--workers needs Redis /)
    write({ server: { port: -1 }, models: [modelEntry(['nonsense'])] })
    const { failure } = await run()
    assert.ok(failure instanceof ConfigError)
    assert.equal(failure.mistakes.length, 2)
    write({ catalog: 'missing.yaml' })
    assert.ok((await run()).failure)
  })
})

describe('a port on which nothing can listen', () => {
  const settings = [
    { key: 'server.host', value: '0.0.0.0', source: 'WEIR_HOST' },
    { key: 'server.port', value: 80, source: '--port' },
    { key: 'server.admin_port', value: 81, source: 'default' },
  ]
  const explained = (error: object, config = { port: 80, settings }): string | undefined =>
    listenFailure({ syscall: 'listen', address: '10.0.0.1', port: 80, ...error }, config)

  it('is explained with where it was set, and with what to do', () => {
    const [publicChoices, adminChoices] = ['--port N, WEIR_PORT or server.port', 'WEIR_ADMIN_PORT or server.admin_port']
    assert.deepEqual(
      [
        explained({ code: 'EADDRINUSE' }),
        explained({ code: 'EADDRINUSE', port: 81 }),
        explained({ code: 'EACCES' }),
        explained({ code: 'EACCES', port: 81 }, { port: 80, settings: [] }),
        explained({ code: 'EADDRNOTAVAIL' }),
        explained({ code: 'EADDRNOTAVAIL', port: 81 }),
      ],
      [
        `port 80 on 10.0.0.1 is in use (the port comes from --port); stop the program that uses it, or choose another port with ${publicChoices}`,
        `port 81 on 10.0.0.1 is in use (the port comes from the default of server.admin_port); stop the program that uses it, or choose another port with ${adminChoices}`,
        `this user may not listen on port 80 (it comes from --port); choose a port above 1023 with ${publicChoices}`,
        `this user may not listen on port 81 (it comes from the default of server.admin_port); choose a port above 1023 with ${adminChoices}`,
        '10.0.0.1 is not an address of this machine (it comes from WEIR_HOST, server.host); correct server.host',
        '10.0.0.1 is not an address of this machine (it comes from the default of server.admin_host); correct server.admin_host',
      ],
    )
  })

  it('is not the reason of any other failure', () => {
    for (const error of [
      { code: 'EMFILE' },
      { code: 'EADDRINUSE', syscall: 'connect' },
      { code: 'EADDRINUSE', port: undefined, address: '/run/commands.sock' },
    ])
      assert.equal(explained(error), undefined)
  })
})

describe('the number of workers', () => {
  it('is from 1 to 256', () => {
    assert.deepEqual([undefined, '1', '256'].map(workersOf), [undefined, 1, 256])
    for (const text of ['', '0', '257', '1000', '-1', '1.5', 'two'])
      assert.throws(() => workersOf(text), new UsageError('--workers must be a number from 1 to 256'), text)
  })

  it('needs what workers share, and names what is missing', () => {
    const [redisUrl, databaseUrl, dataDir] = ['redis://r', 'postgres://p', '/data']
    assert.deepEqual(requireShared({ redisUrl, databaseUrl, dataDir }), { dataDir, databaseUrl })
    const missing = (changes: object): string => {
      try {
        requireShared({ redisUrl, databaseUrl, dataDir, ...changes })
        return 'nothing'
      } catch (error) {
        return /needs (.*), which all/.exec((error as Error).message)?.[1] ?? ''
      }
    }
    const [redis, postgres] = ['Redis (coordination, or WEIR_REDIS_URL)', 'PostgreSQL (database, or WEIR_DATABASE_URL)']
    assert.equal(missing({ redisUrl: undefined }), redis)
    assert.equal(missing({ databaseUrl: undefined }), postgres)
    assert.equal(missing({ redisUrl: undefined, databaseUrl: undefined }), `${redis} and ${postgres}`)
  })
})
