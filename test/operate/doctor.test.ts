import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { getGlobalDispatcher } from 'undici'
import { stringify } from 'yaml'
import { ProblemsFound, UsageError, type Command } from '../../src/cli/command.ts'
import { check } from '../../src/operate/commands/check.ts'
import { findService, publishService } from '../../src/operate/running-service.ts'
import { doctor } from '../../src/operate/doctor/commands/doctor.ts'
import { models } from '../../src/catalog/commands/models.ts'
import { findModel, manifest, modelPaths } from '../../src/local-models/installed.ts'
import { openAccounts } from '../../src/workspaces/accounts.ts'
import { workerDirectory } from '../../src/cluster/workers/directories.ts'
import { memoryChanges } from '../../src/cluster/changes/memory.ts'
import { openStore } from '../../src/store/open.ts'
import { systemClock } from '../../src/shared/system-clock.ts'
import { printed, type Printed } from '../support/printed.ts'
import { scriptedServer } from '../support/scripted-server.ts'
import { scriptedService } from '../support/scripted-service.ts'
import { smallDisk } from '../support/small-disk.ts'
import { modelEntry } from '../support/weir.ts'

interface Finding {
  readonly name: string
  readonly state: string
  readonly detail: string
  readonly advice?: string
}

function stage(t: TestContext) {
  const dataDir = mkdtempSync(join(tmpdir(), 'weir-doctor-'))
  t.after(() => rmSync(dataDir, { recursive: true, force: true }))
  const file = join(dataDir, 'weir.yaml')
  const run = (command: Command, content: object, ...args: readonly string[]): Promise<Printed> => {
    writeFileSync(file, stringify(content))
    return printed(command, ...args, '--config', file, '--data', dataDir)
  }
  return {
    dataDir,
    file,
    run,
    /** The findings by this name, and whether the command failed. */
    async found(name: string, content: object): Promise<readonly unknown[]> {
      const { stdout, failure } = await run(doctor, { models: [], ...content }, '--json')
      const { findings } = JSON.parse(stdout) as { readonly findings: readonly Finding[] }
      assert.equal(
        failure instanceof ProblemsFound,
        findings.some(({ state }) => state === 'problem'),
      )
      return findings.filter((it) => it.name === name).map(({ state, detail, advice }) => [state, detail, advice])
    },
  }
}

/** A model of the catalog that Weir runs itself. */
const localEntry = (model: string, changes: object = {}): object =>
  modelEntry([], {
    id: model,
    aliases: [],
    supported_parameters: [],
    serverless: { engine: { kind: 'embedded', model } },
    ...changes,
  })

const tls = (name: string) => ({
  cert: fileURLToPath(new URL('../fixtures/tls/first.cert.pem', import.meta.url)),
  key: fileURLToPath(new URL(`../fixtures/tls/${name}.key.pem`, import.meta.url)),
})
/** When first.cert.pem expires. */
const EXPIRES = Date.parse('2126-10-24T19:44:53Z')
const DAY_MS = 86_400_000

describe('weir doctor', () => {
  it('notes that files of batches are in S3, where no backup has them', async (t) => {
    const { found } = stage(t)
    assert.deepEqual(await found('files of batches', {}), [])
    const files = { kind: 's3', endpoint: 'http://127.0.0.1:9', bucket: 'weir', region: 'x' }
    const keys = { access_key_env: 'HOME', secret_key_env: 'HOME' }
    assert.deepEqual(await found('files of batches', { files: { ...files, ...keys } }), [
      [
        'note',
        'in the bucket weir, below batches/; weir backup and pg_dump do not have them',
        'back up the bucket, too',
      ],
    ])
  })

  it('shows every finding with a mark, and what to do about it', async (t) => {
    const { run, file, dataDir } = stage(t)
    const content = { models: [modelEntry(['http://127.0.0.1:9/v1'])] }
    const { stdout, failure } = await run(doctor, content)
    assert.ok(failure instanceof ProblemsFound)
    assert.equal(failure.message, 'problems found; see above')
    const lines = stdout.split('\n')
    assert.match(
      lines[0] ?? '',
      /^✔ machine: Node 2\d\.\d+\.\d+, \w+ \w+, \d+ cores, \d{1,4}\.\d of \d{1,4}\.\d GB of memory free$/,
    )
    assert.equal(lines[1], `✔ configuration: ${file}, 1 model in the catalog`)
    assert.deepEqual(lines.slice(2, 4), [
      '• service: not running on this data directory',
      '    → start it with npm start',
    ])
    assert.match(lines[4] ?? '', /^. data directory: \S+, \d{1,6}\.\d GB free$/)
    assert.ok(lines[4]?.includes(dataDir))
    assert.deepEqual(lines.slice(-5), [
      '✖ engine: http://127.0.0.1:9/v1 does not answer',
      '    → start the engine, or correct its URL in the catalog; see docs/runbooks/WeirEngineDown.md',
      '✔ llama.cpp (chat models): installed',
      '✔ ONNX (speech, embeddings, images): installed',
      '',
    ])
    const unexpected = await run(doctor, content, 'everything')
    assert.ok(unexpected.failure instanceof UsageError)
  })

  it('detects that a directory cannot be used', async (t) => {
    const { run, dataDir } = stage(t)
    writeFileSync(join(dataDir, 'taken'), '')
    const file = join(dataDir, 'other.yaml')
    writeFileSync(file, stringify({ data_dir: 'taken', models: [] }))
    const { stdout, failure } = await printed(doctor, '--config', file)
    assert.ok(failure instanceof ProblemsFound)
    assert.match(stdout, /^✖ data directory: EEXIST: .*\n {4}→ choose another directory with --data or data_dir$/m)
    assert.match((await run(doctor, { models: [] })).stdout, /^✔ data directory/m)
  })

  it('warns when less than 1 GB of the disk of the data is free', async (t) => {
    const disk = smallDisk(1_001_000_000)
    if (!disk) return t.skip('only root may mount a disk')
    t.after(disk.remove)
    const file = join(disk.folder, 'weir.yaml')
    writeFileSync(file, stringify({ models: [] }))
    const look = async (): Promise<string | undefined> =>
      (await printed(doctor, '--config', file, '--data', disk.folder)).stdout
        .split('\n')
        .find((line) => /^. data directory/.test(line))
    assert.equal(await look(), `✔ data directory: ${disk.folder}, 1.0 GB free`)
    disk.resize(999_000_000)
    assert.equal(await look(), `✖ data directory: ${disk.folder}, 1.0 GB free`)
  })

  it('calls engines at a path that costs them nothing, and accepts any answer below 500', async (t) => {
    const { found, dataDir } = stage(t)
    const server = await scriptedServer(t, (_asked, response) => void response.writeHead(404).end())
    const failing = await scriptedServer(t, (_asked, response) => void response.writeHead(500).end())
    const socket = join(dataDir, 'engine.sock')
    const listening = createServer().listen(socket)
    t.after(() => listening.close())
    const engine = (kind: string, url: string, id: string) =>
      modelEntry([], {
        id,
        aliases: [],
        supported_parameters: ['temperature'],
        serverless: { engine: { kind, urls: [url], model: 'm' } },
      })
    const advice = 'start the engine, or correct its URL in the catalog; see docs/runbooks/WeirEngineDown.md'
    assert.deepEqual(
      await found('engine', {
        models: [
          engine('vllm', `${server.url}/v1`, 'a/vllm'),
          engine('openai', `${server.url}/other`, 'a/openai'),
          engine('vllm', failing.url, 'a/failing'),
          engine('openai', `unix:${socket}`, 'a/socket'),
          engine('openai', `unix:${socket}.none`, 'a/no-socket'),
          engine('vllm', `${server.url}/v1`, 'a/twice'),
        ],
      }),
      [
        ['ok', `${server.url}/v1`, undefined],
        ['ok', `${server.url}/other`, undefined],
        ['problem', `${failing.url} does not answer`, advice],
        ['ok', `unix:${socket}`, undefined],
        ['problem', `unix:${socket}.none does not answer`, advice],
      ],
    )
    assert.deepEqual(server.asked.map(({ path }) => path).toSorted(), ['/', '/health'])
  })

  it('waits three seconds for an engine', async (t) => {
    const { found } = stage(t)
    const dispatched = t.mock.method(getGlobalDispatcher(), 'dispatch')
    const server = await scriptedServer(t, () => ({ a: 1 }))
    const engine = { kind: 'vllm', urls: [server.url], model: 'm' }
    const entry = modelEntry([], { aliases: [], supported_parameters: [], serverless: { engine } })
    assert.deepEqual(await found('engine', { models: [entry] }), [['ok', server.url, undefined]])
    assert.deepEqual(
      dispatched.mock.calls.map(({ arguments: [{ path, headersTimeout, bodyTimeout }] }) => [
        path,
        headersTimeout,
        bodyTimeout,
      ]),
      [['/health', 3000, 3000]],
    )
  })

  it('looks at the metrics of every worker', async (t) => {
    const { found, dataDir } = stage(t)
    for (const number of [1, 2]) {
      const directory = workerDirectory(dataDir, number)
      mkdirSync(directory)
      const samples = [{ label: '', value: number === 1 ? 1 : 0 }]
      await scriptedService(t, directory, { metrics: async () => [{ name: 'weir_ledger_healthy', samples }] })
    }
    assert.deepEqual(await found('ledger', {}), [
      ['problem', 'usage cannot be recorded', 'see docs/runbooks/WeirLedgerLags.md'],
    ])
  })

  it('asks the service for the engines that it starts: which failed, and which take more than is kept for them', async (t) => {
    const { found, dataDir } = stage(t)
    const run = { command: ['serve'], port: 9 }
    const started = modelEntry([], { id: 'a/started', aliases: [], serverless: { engine: { kind: 'vllm', run } } })
    assert.deepEqual(await found('engine', { models: [started] }), [], 'it need not answer while no request needs it')
    const usual = {
      waiting: 0,
      running: 0,
      pinned: false,
      device: 'gpu0',
      held_bytes: 10e9,
      start_ms: [],
      last_lines: [],
    }
    const list = [
      {
        lane: 'a/failed',
        state: 'failed',
        problem: 'ended with exit code 1',
        needed_bytes: 10e9,
        measured_bytes: null,
      },
      { lane: 'a/large', state: 'ready', problem: null, needed_bytes: 10e9, measured_bytes: 12e9 },
      { lane: 'a/close', state: 'ready', problem: null, needed_bytes: 10e9, measured_bytes: 10.5e9 },
    ].map((it) => ({ ...usual, memory_source: 'configured', ...it }))
    await scriptedService(t, dataDir, { engines: { list: () => list, order: async () => {} } })
    assert.deepEqual(await found('engine', { models: [started] }), [
      [
        'problem',
        'a/failed failed: ended with exit code 1',
        `see what it printed in ${dataDir}/engines, or on the operator's page Engines`,
      ],
    ])
    assert.deepEqual(await found('engine memory', {}), [
      [
        'note',
        'a/large took 12.0 GB of gpu0, where 10.0 GB are kept for it',
        'raise run.memory in the catalog: others may not find the room that they are given',
      ],
    ])
  })

  it('warns before a certificate expires, and explains what is wrong with one', async (t) => {
    const { found } = stage(t)
    const names = 'DNS:first.example.com, IP Address:127.0.0.1, valid until 2126-10-24'
    const advice =
      'renew it: a running service takes the changed files by itself; see docs/runbooks/WeirCertificateEnds.md'
    const at = async (now: number) => {
      t.mock.timers.enable({ apis: ['Date'], now })
      const result = await found('certificate', { server: { tls: tls('first') } })
      t.mock.timers.reset()
      return result
    }
    assert.deepEqual(await at(EXPIRES - 14 * DAY_MS), [['ok', names, undefined]])
    assert.deepEqual(await at(EXPIRES - 14 * DAY_MS + 1), [['note', names, advice]])
    assert.deepEqual(await at(EXPIRES), [['note', names, advice]])
    assert.deepEqual(await at(EXPIRES + 1), [['problem', names, advice]])
    const [wrong] = await found('certificate', { server: { tls: tls('second') } })
    assert.match(String(wrong), /^problem,server\.tls\.key: .* does not belong to the certificate in /)
    assert.deepEqual(await found('certificate', {}), [])
  })

  it('checks the database, and shows no password', async (t) => {
    const { found } = stage(t)
    const [[state, detail] = []] = (await found('database', {
      database: 'postgres://weir:secret@127.0.0.1:9/weir',
    })) as readonly string[][]
    assert.equal(state, 'problem')
    assert.match(String(detail), /127\.0\.0\.1/)
    assert.doesNotMatch(String(detail), /secret/)
    assert.deepEqual(await found('database', {}), [])
  })

  it('queries the running service, also for counts of engines that contradict the text', async (t) => {
    const { found, run, dataDir } = stage(t)
    const server = await scriptedServer(t, ({ path }, response) => {
      response.statusCode = path === '/healthz' ? 200 : 500
      return {}
    })
    const counts = { lane: 'm', kind: 'vllm', answers: 1, counted: 9, least: 2, most: 8 }
    const { stop } = await scriptedService(
      t,
      dataDir,
      {
        metrics: async () => [
          { name: 'weir_ledger_healthy', samples: [{ label: '', value: 0 }] },
          { name: 'weir_data_disk_free_bytes', samples: [{ label: '', value: 5 }] },
          { name: 'weir_queue_depth', samples: [{ label: '{lane="m"}', value: 9 }] },
          { name: 'weir_lane_max_queue_depth', samples: [{ label: '{lane="m"}', value: 10 }] },
        ],
        contradictedCounts: () => [counts, { ...counts, answers: 2, counted: 1 }, { ...counts, counted: 8 }],
      },
      server.url,
    )
    // Only the operator's listener is asked.
    const url = 'http://127.0.0.1:9'
    publishService(dataDir, { ...(findService(dataDir) ?? assert.fail()), url })
    assert.deepEqual(await found('service', {}), [['ok', `running at ${url}`, undefined]])
    assert.deepEqual(await found('ledger', {}), [
      ['problem', 'usage cannot be recorded', 'see docs/runbooks/WeirLedgerLags.md'],
    ])
    const { stdout } = await run(
      doctor,
      { server: { tls: tls('first') }, models: [modelEntry(['http://127.0.0.1:9/v1'])] },
      '--json',
    )
    const names = (JSON.parse(stdout) as { findings: readonly Finding[] }).findings.map(({ name }) => name)
    assert.deepEqual(names.slice(2, 9), [
      'service',
      'data directory',
      'disk',
      'ledger',
      'engine',
      'queue',
      'certificate',
    ])
    const template =
      'see whether its chat template adds a long text; if it does not count tokens, set usage: estimated for the engine (docs/billing.md); such answers are billed as counted'
    const truncated =
      'see whether the engine truncates its input or leaves out what it had in its cache; such answers are billed as counted'
    assert.deepEqual(await found('token counts', {}), [
      [
        'note',
        'm: the engine (vllm) counted 9 input tokens where 2 to 8 are plausible, in 1 answer since the start',
        template,
      ],
      [
        'note',
        'm: the engine (vllm) counted 1 input tokens where 2 to 8 are plausible, in 2 answers since the start',
        truncated,
      ],
      [
        'note',
        'm: the engine (vllm) counted 8 input tokens where 2 to 8 are plausible, in 1 answer since the start',
        truncated,
      ],
    ])
    await stop()
    const gone = ['note', 'not running on this data directory', 'start it with npm start']
    assert.deepEqual(await found('service', {}), [gone])
    await scriptedService(t, dataDir, {})
    assert.deepEqual(await found('service', {}), [
      ['problem', 'running, but http://127.0.0.1:9 does not answer', 'see docs/runbooks/WeirDown.md'],
    ])
  })

  it('names parameters that an engine does not accept, and local models that are missing', async (t) => {
    const { found, run, dataDir } = stage(t)
    const untaken = modelEntry([], {
      categories: ['embedding'],
      supported_parameters: ['dimensions'],
      serverless: { engine: { kind: 'llamacpp', urls: ['http://127.0.0.1:9'], model: 'm' } },
    })
    const parameters = await found('parameters', { models: [untaken] })
    assert.equal(parameters.length, 1)
    assert.match(
      String(parameters[0]),
      /^note,.*take them out of the catalog; docs\/engines\.md says what each kind takes$/,
    )
    const [shipped, large] = ['weir/starter-vision', 'qwen/qwen3-8b']
    const local = { models: [localEntry(shipped), localEntry(large), localEntry('no/such')] }
    assert.deepEqual(await found('model', local), [
      ['ok', `${shipped} is downloaded`, undefined],
      ['note', `${large} is not downloaded (5.0 GB)`, `download it with: weir models pull ${large}`],
    ])
    const one = '• models: 1 of 2 models that Weir runs itself are not downloaded\n    → weir models list shows them'
    assert.ok((await run(doctor, local)).stdout.includes(one))
    assert.match(
      (await run(doctor, { models: [localEntry(shipped)] })).stdout,
      /\n✔ models: all 1 model that Weir runs itself are downloaded\n$/,
    )
    const model = findModel(large)!
    const target = modelPaths(join(dataDir, 'models')).ofFile(model, model.files[0]!)
    mkdirSync(dirname(target), { recursive: true })
    writeFileSync(`${target}.0.part`, '')
    assert.deepEqual((await found('model', local))[1], ['note', `${large} is being downloaded (5.0 GB)`, undefined])
  })
})

describe('weir models', () => {
  it('lists the models of the catalog with their states and prices', async (t) => {
    const { run } = stage(t)
    const content = {
      models: [
        modelEntry(['http://127.0.0.1:9/v1']),
        localEntry('weir/starter-vision'),
        localEntry('qwen/qwen3-8b', { id: 'our/own' }),
        { ...modelEntry([], { id: 'no/engine', aliases: [] }), serverless: { limits: { token_budget: 1000 } } },
        {
          ...modelEntry([], { id: 'for/one', aliases: [] }),
          serverless: undefined,
          dedicated: [{ workspace: 'w', engine: { kind: 'vllm', urls: ['http://127.0.0.1:9/v1'], model: 'm' } }],
        },
      ],
    }
    assert.equal(
      (await run(models, content, 'list')).stdout,
      `MODEL                KIND  STATE             SIZE  A$ PER 1M
meta/test-8b         llm   remote               -  0.20 / 0.60
weir/starter-vision  llm   ready            13 MB  0.20 / 0.60
our/own              llm   not downloaded  5.0 GB  0.20 / 0.60
no/engine            llm   no engine            -  0.20 / 0.60
for/one              llm   remote               -  0.20 / 0.60

Prices exclude GST: input / output per 1M tokens, or the unit that is named.
Download a model with: weir models pull our/own
`,
    )
    const { object, data } = JSON.parse((await run(models, content, 'list', '--json')).stdout) as {
      readonly object: string
      readonly data: readonly object[]
    }
    assert.equal(object, 'list')
    assert.deepEqual(data[0], {
      id: 'meta/test-8b',
      name: 'Test 8B',
      aliases: ['test-8b'],
      categories: ['llm'],
      modes: ['serverless'],
      endpoints: ['/chat/completions'],
      context_length: 8192,
      pricing: { input_per_million: '0.20', output_per_million: '0.60', cached_input_per_million: '0.05' },
      engine: 'openai',
      state: 'remote',
      size_mb: null,
      received_bytes: null,
      problem: null,
    })
    assert.partialDeepStrictEqual(data[2], { engine: 'embedded', state: 'not downloaded', size_mb: 5030 })
    assert.partialDeepStrictEqual(data[3], { engine: null, state: 'no engine', size_mb: null })
  })

  it('pulls and removes one, also by its name in the catalog, and audits both', async (t) => {
    const { run, dataDir } = stage(t)
    const content = { models: [localEntry('qwen/qwen3-8b', { id: 'our/own', aliases: ['own'] })] }
    const boxed = 'weir/starter-vision'
    assert.equal((await run(models, content, 'pull', boxed)).stdout, `${boxed} is ready.\n`)
    await (await openStore({ dataDir, exclusive: false })).close()
    assert.equal((await run(models, content, 'pull', boxed, '--json')).stdout, `{"model":"${boxed}","state":"ready"}\n`)
    const shipped = await run(models, content, 'remove', boxed)
    assert.equal(shipped.failure?.message, `'${boxed}' is shipped with Weir and cannot be removed.`)
    assert.equal(shipped.failure.constructor.name, 'CommandFailed')
    for (const name of ['our/own', 'own', 'qwen/qwen3-8b']) {
      const { stdout } = await run(models, content, 'remove', name)
      assert.equal(stdout, 'qwen/qwen3-8b has been removed. 0 KB of the disk are free again.\n')
    }
    assert.equal(
      (await run(models, content, 'remove', 'own', '--json')).stdout,
      '{"model":"qwen/qwen3-8b","removed":[],"also_gone":[],"freed_bytes":0}\n',
    )
    const store = await openStore({ dataDir, exclusive: false })
    const entries = (await store.auditLog({ limit: 10 })).toReversed()
    await store.close()
    const bytes = manifest.find(({ catalog }) => catalog.id === boxed)?.files.reduce((sum, it) => sum + it.bytes, 0)
    const ready = `{"state":"ready","received_bytes":${bytes}}`
    const absent = '{"state":"not downloaded","received_bytes":0}'
    assert.deepEqual(
      entries.slice(0, 3).map(({ action, subject, request, before, after, outcome }) => [
        [action, subject, request, outcome],
        [before, after],
      ]),
      [
        [
          ['pullModel', boxed, null, 'done'],
          [ready, ready],
        ],
        [
          ['removeModel', boxed, null, 'refused'],
          [ready, null],
        ],
        [
          ['removeModel', 'qwen/qwen3-8b', null, 'done'],
          [absent, absent],
        ],
      ],
    )
  })

  it('pauses one, and asks a running service to remove one', async (t) => {
    const { run, dataDir } = stage(t)
    const slug = 'qwen/qwen3-8b'
    const content = { models: [localEntry(slug)] }
    const part = `${modelPaths(join(dataDir, 'models')).ofRole(findModel(slug) ?? assert.fail(), 'model')}.0.part`
    mkdirSync(dirname(part), { recursive: true })
    writeFileSync(part, '12345')
    const state = async (): Promise<object> =>
      (JSON.parse((await run(models, content, 'list', '--json')).stdout) as { data: object[] }).data[0] ?? {}
    assert.partialDeepStrictEqual(await state(), { state: 'downloading', received_bytes: 5 })
    assert.equal(
      (await run(models, content, 'pause', slug)).stdout,
      `${slug} is paused, with 1 KB on the disk. Continue with: weir models pull ${slug}\n`,
    )
    assert.partialDeepStrictEqual(await state(), { state: 'paused', received_bytes: 5 })
    assert.equal(
      (await run(models, content, 'pause', 'weir/starter-vision')).failure?.message,
      'weir/starter-vision is downloaded, so there is nothing to pause.',
    )

    const removed: string[] = []
    const { stop } = await scriptedService(t, dataDir, {
      async removeModel(model) {
        removed.push(model)
        if (removed.length === 1) throw new Error(`${model} is in use`)
        return { removed: ['a.gguf'], alsoGone: [], freedBytes: 2_000_000 }
      },
    })
    assert.equal((await run(models, content, 'remove', slug)).failure?.message, `${slug} is in use`)
    assert.match(
      (await run(models, content, 'remove', slug)).stdout,
      /removed\. 2.0 MB of the disk are free again\.\n$/,
    )
    assert.deepEqual(removed, [slug, slug])
    await stop()
    assert.match((await run(models, content, 'remove', slug)).stdout, /removed\. 1 KB of the disk/)
    assert.partialDeepStrictEqual(await state(), { state: 'not downloaded', received_bytes: 0 })
  })

  it('names the models that shared files with one that is removed', async (t) => {
    const { run, dataDir } = stage(t)
    const sharing = manifest.flatMap((one) =>
      manifest
        .filter((other) => other !== one && other.files.some(({ path }) => one.files.some((it) => it.path === path)))
        .map((other) => [one, other] as const),
    )[0]
    assert.ok(sharing)
    const paths = modelPaths(join(dataDir, 'models'))
    for (const model of sharing) {
      for (const target of model.files.map((it) => paths.ofFile(model, it))) {
        mkdirSync(dirname(target), { recursive: true })
        writeFileSync(target, '')
      }
    }
    const [one, other] = sharing.map(({ catalog }) => catalog.id)
    const { stdout } = await run(models, { models: [] }, 'remove', one ?? '')
    assert.match(
      stdout,
      new RegExp(
        `^${one} has been removed\\. 0 KB of the disk are free again\\. That also removed .*${other}.*, which shared its files\\.`,
      ),
    )
  })

  it('refuses invalid arguments', async (t) => {
    const { run } = stage(t)
    const cases = [
      [[], 'choose an action: list, pull, add, pause or remove'],
      [['make'], 'choose an action: list, pull, add, pause or remove'],
      [['list', 'x'], 'unexpected argument "x"; put names with spaces in quotes'],
      [['pull'], 'give the slug of a model: weir models pull SLUG'],
      [['pause'], 'give the slug of a model: weir models pause SLUG'],
      [['remove'], 'give the slug of a model: weir models remove SLUG'],
      [['pull', 'no/such'], 'the embedded engine does not know the model "no/such"; see weir models list'],
      [['pull', 'meta/test-8b'], 'the embedded engine does not know the model "meta/test-8b"; see weir models list'],
    ] as const
    for (const [args, message] of cases) {
      const { failure } = await run(models, { models: [modelEntry(['http://127.0.0.1:9/v1'])] }, ...args)
      assert.ok(failure instanceof UsageError)
      assert.equal(failure.message, message)
    }
  })
})

describe('weir check', () => {
  it('lists mistakes and warnings, and fails only for mistakes', async (t) => {
    const { run, file, dataDir } = stage(t)
    const well = { models: [modelEntry(['http://127.0.0.1:9/v1'])] }
    assert.equal((await run(check, well)).stdout, `${file} is correct.\n`)
    assert.equal((await run(check, well, '--json')).stdout, `${JSON.stringify({ file, mistakes: [], warnings: [] })}\n`)
    const doubtful = { models: [modelEntry(['http://127.0.0.1:9/v1'], { visible_to: ['nobody'] })] }
    // Before the first start, no workspace is known.
    assert.equal((await run(check, doubtful)).stdout, `${file} is correct.\n`)
    const store = await openStore({ dataDir, exclusive: false })
    const accounts = await openAccounts(store, systemClock, memoryChanges())
    await accounts.createWorkspace('acme')
    await store.close()
    const warned = await run(check, doubtful)
    assert.match(warned.stdout, /^! .*nobody.*\n/)
    assert.ok(warned.stdout.endsWith(`\n${file} is correct, with 1 warning.\n`))
    assert.equal(warned.failure, undefined)
    const known = { models: [modelEntry(['http://127.0.0.1:9/v1'], { visible_to: ['acme'] })] }
    assert.equal((await run(check, known)).stdout, `${file} is correct.\n`)
    const unknown = await run(check, { models: [localEntry('no/such')] })
    assert.equal(
      unknown.stdout,
      `✖ no/such: the embedded engine does not know the model "no/such"; see weir models list\n${file} has 1 mistake.\n`,
    )
    assert.ok(unknown.failure instanceof ProblemsFound)
    assert.equal(unknown.failure.message, 'mistakes found; see above')
    const wrong = await run(check, { server: { port: -1, host: '' } }, '--port', 'x', '--json')
    assert.ok(wrong.failure instanceof ProblemsFound)
    const said = JSON.parse(wrong.stdout) as { file: string; mistakes: string[]; warnings: string[] }
    assert.deepEqual([said.file, said.mistakes.length, said.warnings], [file, 3, []])
    assert.match(said.mistakes[0] ?? '', /^--port: must be a port/)
  })
})
