import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { stringify } from 'yaml'
import { commandActor, CommandFailed, UsageError, type Command } from '../../src/cli/command.ts'
import { config as showConfig } from '../../src/operate/commands/config.ts'
import { consoleLink } from '../../src/cli/console.ts'
import { reload } from '../../src/operate/commands/reload.ts'
import { listingText, replicas } from '../../src/cluster/commands/replicas.ts'
import type { Paint } from '../../src/cli/terminal/view.ts'
import { ConfigError } from '../../src/shared/checked-yaml.ts'
import type { ReplicaListing } from '../../src/operate/running-service.ts'
import { openStore } from '../../src/store/open.ts'
import { plainView } from '../support/terminal.ts'
import { printed, type Printed } from '../support/printed.ts'
import { scriptedService } from '../support/scripted-service.ts'
import { modelEntry } from '../support/weir.ts'

/** A data directory with an empty ledger, and commands that run on it. */
async function stage(t: TestContext) {
  const dataDir = mkdtempSync(join(tmpdir(), 'weir-asked-'))
  t.after(() => rmSync(dataDir, { recursive: true, force: true }))
  await (await openStore({ dataDir, exclusive: false })).close()
  const file = join(dataDir, 'weir.yaml')
  writeFileSync(file, stringify({ models: [modelEntry(['http://127.0.0.1:9/v1'])] }))
  const run = (command: Command, ...args: readonly string[]): Promise<Printed> =>
    printed(command, ...args, '--config', file, '--data', dataDir)
  return {
    dataDir,
    file,
    run,
    async failed(command: Command, ...args: readonly string[]): Promise<readonly unknown[]> {
      const { failure } = await run(command, ...args)
      return [failure?.constructor, failure?.message]
    },
    async audit(): Promise<readonly unknown[]> {
      const store = await openStore({ dataDir, exclusive: false })
      const entries = (await store.auditLog({ limit: 100 })).toReversed()
      await store.close()
      return entries.map(({ action, subject, request, outcome }) => [action, subject, request, outcome])
    },
  }
}

describe('weir reload', () => {
  it('makes a running service read its files, and reports what it applied', async (t) => {
    const { dataDir, run, failed, audit } = await stage(t)
    const none = `no service is running on ${dataDir}; start it with npm start, or name another with --data`
    assert.deepEqual(await failed(reload), [UsageError, none])
    assert.deepEqual(await failed(reload, 'now'), [UsageError, 'unexpected argument "now"'])
    const forced: boolean[] = []
    let answer: {
      models: number
      unreached: string[]
      needsRestart: { key: string; value: string; needs: 'restart' }[]
    }
    answer = { models: 1, unreached: [], needsRestart: [] }
    const reloads = {
      accounts: async () => assert.fail('the accounts have not changed'),
      async catalog({ force }: { force: boolean }) {
        forced.push(force)
        if (answer.models < 0) throw new Error('line 3 is wrong')
        return answer
      },
    }
    await scriptedService(t, dataDir, { reloads })
    assert.equal((await run(reload)).stdout, 'Reloaded: 1 model.\n')
    answer = {
      models: 2,
      unreached: ['other'],
      needsRestart: [{ key: 'server.host', value: '0.0.0.0', needs: 'restart' }],
    }
    const { stdout, stderr, failure } = await run(reload, '--force')
    assert.equal(stdout, 'Reloaded: 2 models.\n! server.host is 0.0.0.0 in the file: needs a restart\n')
    assert.equal(stderr, 'weir: this replica did not answer, and takes the change in when it can: other\n')
    assert.equal(failure, undefined)
    assert.deepEqual(forced, [false, true])
    const { needsRestart, ...taken } = answer
    assert.deepEqual(JSON.parse((await run(reload, '--json')).stdout), {
      reloaded: true,
      ...taken,
      needs_restart: needsRestart,
    })
    answer = { models: 2, unreached: [], needsRestart: [{ key: 'catalog', value: 'other.yaml', needs: 'restart' }] }
    const kept = await run(reload)
    assert.equal(kept.stdout, '! catalog is other.yaml in the file: needs a restart\n')
    assert.ok(kept.failure instanceof CommandFailed)
    assert.equal(kept.failure.message, 'the service goes on with its old catalog; restart it to take the new one')
    answer = { models: -1, unreached: [], needsRestart: [] }
    assert.deepEqual(await failed(reload), [ConfigError, 'line 3 is wrong'])
    assert.deepEqual(await audit(), [
      ['reloadCatalog', '', '{"force":false}', 'done'],
      ['reloadCatalog', '', '{"force":true}', 'done'],
      ['reloadCatalog', '', '{"force":false}', 'done'],
      ['reloadCatalog', '', '{"force":false}', 'done'],
      ['reloadCatalog', '', '{"force":false}', 'refused'],
    ])
  })
})

describe('weir console', () => {
  it('prints a link of the running service, and audits it', async (t) => {
    const { dataDir, run, failed, audit } = await stage(t)
    assert.deepEqual(await failed(consoleLink), [
      UsageError,
      `no service is running on ${dataDir}; start it with npm start, or name another with --data`,
    ])
    await scriptedService(t, dataDir, {
      async consoleLink(workspace) {
        if (workspace === 'nobody') throw new Error('There is no workspace "nobody".')
        return `http://h/console#${workspace}`
      },
    })
    assert.equal((await run(consoleLink)).stdout, 'http://h/console#undefined\nIt signs in once, within 30 minutes.\n')
    assert.equal(
      (await run(consoleLink, '--workspace', 'acme', '--json')).stdout,
      '{"url":"http://h/console#acme","workspace":"acme"}\n',
    )
    assert.equal((await run(consoleLink, '--json')).stdout, '{"url":"http://h/console#undefined","workspace":null}\n')
    assert.deepEqual(await failed(consoleLink, '--workspace', 'nobody'), [
      CommandFailed,
      'There is no workspace "nobody".',
    ])
    assert.deepEqual(await audit(), [
      ['issueConsoleLink', 'operator', null, 'done'],
      ['issueConsoleLink', 'acme', null, 'done'],
      ['issueConsoleLink', 'operator', null, 'done'],
      ['issueConsoleLink', 'nobody', null, 'refused'],
    ])
  })
})

describe('weir replicas', () => {
  const started = '2026-11-15T00:00:00.000Z'
  const one = {
    name: 'one',
    version: '0.1.0',
    started_at: started,
    epoch: 'e1',
    in_flight_requests: 1200,
    queue_depth: 3400,
    journal_bytes: 5,
    journal_lag_ms: 62_000,
    draining: false,
  }
  const listing: ReplicaListing = {
    coordination: 'joined',
    data: [one, { ...one, name: 'two', epoch: null, draining: true, started_at: '2026-11-15T00:20:00.000Z' }],
  }

  it('are listed with their uptime, and draining ones are marked', () => {
    const now = Date.parse(started) + 720_000
    const painted: [string, string][] = []
    const paint: Paint = (tone, text) => {
      if (tone !== 'bold') painted.push([tone, text])
      return text
    }
    const table = `NAME  VERSION  EPOCH      UP  IN FLIGHT  QUEUED  JOURNAL LAG  STATE
one   0.1.0    e1     12 min      1,200   3,400         62 s  serving
two   0.1.0    -        0 ms      1,200   3,400         62 s  draining`
    assert.equal(listingText(listing, now, { ...plainView(200), paint }), table)
    assert.deepEqual(painted, [['yellow', 'draining']])
    assert.equal(listingText({ ...listing, coordination: 'alone' }, now, plainView(200)), table)
    assert.equal(
      listingText({ ...listing, coordination: 'degraded' as never }, now, plainView(200)),
      `${table}\n\nRedis does not answer, so only the replica that was asked is listed.`,
    )
  })

  it('are listed by the running service, and one of them is drained, optionally waiting until it has left', async (t) => {
    const { dataDir, run, failed } = await stage(t)
    const none = `no service is running on ${dataDir}; start it with weir serve, or name another with --data`
    assert.deepEqual(await failed(replicas), [CommandFailed, none])
    assert.deepEqual(await failed(replicas, 'drain', 'one'), [CommandFailed, none])
    const drained: string[] = []
    let looks = 0
    await scriptedService(t, dataDir, {
      replicas: {
        async list() {
          looks += drained.length === 0 ? 0 : 1
          return looks < 3 ? listing : { ...listing, data: listing.data.slice(1) }
        },
        async drain(name, actor) {
          if (name === 'none') throw new Error('There is no replica "none".')
          drained.push(`${name}, ${actor}`)
        },
      },
    })
    assert.match((await run(replicas)).stdout, /^NAME .*\none .*\ntwo .* draining\n$/)
    assert.deepEqual(JSON.parse((await run(replicas, '--json')).stdout), listing)
    assert.equal(
      (await run(replicas, 'drain', 'two')).stdout,
      'two takes no new work, and leaves when its requests have finished.\n',
    )
    assert.equal(looks, 0)
    assert.equal((await run(replicas, 'drain', 'one', '--wait')).stdout, 'one has left.\n')
    assert.equal(looks, 3)
    assert.equal((await run(replicas, 'drain', 'one', '--json')).stdout, '{"name":"one","asked":true,"left":false}\n')
    assert.equal(
      (await run(replicas, 'drain', 'one', '--wait', '--json')).stdout,
      '{"name":"one","asked":true,"left":true}\n',
    )
    assert.deepEqual(drained[0], `two, ${commandActor()}`)
    assert.deepEqual(await failed(replicas, 'drain', 'none'), [CommandFailed, 'There is no replica "none".'])
    assert.deepEqual(await failed(replicas, '--wait'), [UsageError, '--wait belongs to: weir replicas drain NAME'])
    assert.deepEqual(await failed(replicas, 'stop'), [
      UsageError,
      'there is no action "stop"; leave it out, or use: drain NAME',
    ])
    const name = 'give the name of the replica: weir replicas drain NAME'
    assert.deepEqual(await failed(replicas, 'drain'), [UsageError, name])
    assert.deepEqual(await failed(replicas, 'drain', 'one', 'two'), [
      UsageError,
      'unexpected argument "two"; put names with spaces in quotes',
    ])
  })
})

describe('weir config', () => {
  it('shows the settings and where they come from', async (t) => {
    const { dataDir, file, run } = await stage(t)
    const { stdout } = await run(showConfig)
    assert.match(stdout, new RegExp(`^${file}\\. No service is running\\.\\n\\nSETTING +VALUE +FROM\\n`))
    assert.match(stdout, new RegExp(`\\ndata_dir +${dataDir} +--data\\n`))
    assert.doesNotMatch(stdout, /\n\n!/)
    const json = JSON.parse((await run(showConfig, '--json')).stdout) as Readonly<Record<string, unknown>>
    assert.deepEqual([json['file'], json['service'], json['problem']], [file, null, null])
    const painted: string[] = []
    const { configText } = await import('../../src/operate/commands/config.ts')
    const settings = [
      { key: 'a', value: 1, source: 'default' },
      { key: 'b', value: 2, source: '--b' },
    ]
    const paint: Paint = (tone, text) => {
      if (tone === 'dim') painted.push(text)
      return text
    }
    const view = { paint, width: 100 }
    assert.equal(
      configText({ file: null, service: null, problem: null, settings }, view),
      `No weir.yaml: the defaults apply. No service is running.

SETTING  VALUE  FROM
a        1      default
b        2      --b`,
    )
    assert.deepEqual(painted, ['default'])
  })

  it('shows those of a running service, and what it has not applied yet', async (t) => {
    const { dataDir, run } = await stage(t)
    await scriptedService(t, dataDir, {
      settings: () => ({
        file: '/srv/weir.yaml',
        settings: [
          { key: 'server.port', value: 8080, source: '--port' },
          { key: 'log.level', value: 'info', source: 'default' },
        ],
        pending: [
          { key: 'server.port', value: 9090, needs: 'restart' },
          { key: 'files.kind', value: 'local', needs: 'restart' },
        ],
        problem: 'line 3 is wrong',
      }),
    })
    assert.equal(
      (await run(showConfig)).stdout,
      `/srv/weir.yaml. In force at http://127.0.0.1:9:

SETTING      VALUE    FROM
server.port  8080     --port
log.level    info     default
files.kind   not set  default

! the file has a mistake and is not taken: line 3 is wrong
! server.port is 9090 in the file: needs a restart
! files.kind is local in the file: needs a restart
`,
    )
    assert.deepEqual(JSON.parse((await run(showConfig, '--json')).stdout), {
      file: '/srv/weir.yaml',
      service: 'http://127.0.0.1:9',
      problem: 'line 3 is wrong',
      settings: [
        { key: 'server.port', value: 8080, source: '--port', pending: { value: 9090, needs: 'restart' } },
        { key: 'log.level', value: 'info', source: 'default' },
        { key: 'files.kind', value: null, source: 'default', pending: { value: 'local', needs: 'restart' } },
      ],
    })
  })
})
