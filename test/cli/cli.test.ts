import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { stringify } from 'yaml'
import { UsageError, type Command } from '../../src/cli/command.ts'
import { keys } from '../../src/workspaces/keys/commands/keys.ts'
import { models } from '../../src/catalog/commands/models.ts'
import { prices } from '../../src/billing/prices/commands/prices.ts'
import { usage } from '../../src/billing/usage/commands/usage.ts'
import { workspaces } from '../../src/workspaces/commands/workspaces.ts'
import { ApiError } from '../../src/shared/errors.ts'
import { sydneyDate } from '../../src/shared/money/sydney-time.ts'
import { openStore } from '../../src/store/open.ts'
import { testBooks } from '../support/books.ts'
import { stageConfig } from '../support/chat-stage.ts'
import { cli, collect, startCli, type CliResult } from '../support/cli.ts'
import { commandLine } from '../support/command-line.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'

const folder = mkdtempSync(join(tmpdir(), 'weir-commands-'))
const config = join(folder, 'weir.yaml')
const server = { port: 0, admin_port: 0 }
writeFileSync(config, stringify({ server, log: { level: 'silent' }, models: [modelEntry(['http://127.0.0.1:9/v1'])] }))
after(() => rmSync(folder, { recursive: true }))

const weir = (...args: string[]): Promise<CliResult> => commandLine([...args, '--config', config])

const commands: Readonly<Record<string, Command>> = { keys, models, prices, usage, workspaces }

/** Runs a command in this process and returns what it throws. */
async function failureOf([name = '', ...args]: readonly string[]): Promise<Error> {
  try {
    await commands[name]?.run(args)
  } catch (error) {
    return error as Error
  }
  return assert.fail(`weir ${name} ${args.join(' ')} did not fail`)
}

describe('weir --help', () => {
  const MAX_COLUMNS = 80
  const assertNarrow = (text: string): void => {
    for (const line of text.split('\n')) assert.ok(line.length <= MAX_COLUMNS, `too wide: ${line}`)
  }

  it('lists every command, and every command has its own help, within 80 columns', async () => {
    const overview = await commandLine(['--help'])
    assert.equal(overview.code, 0)
    assertNarrow(overview.stdout)
    const named = [...overview.stdout.matchAll(/^ {2}(\w+) +\S/gm)].map((match) => match[1] ?? '')
    for (const name of ['serve', 'workspaces', 'keys', 'models', 'prices', 'usage', 'invoice', 'simulate']) {
      assert.ok(named.includes(name), name)
    }
    for (const name of named) {
      const help = await commandLine([name, '--help'])
      assert.deepEqual([help.code, help.stderr], [0, ''], name)
      assert.ok(help.stdout.startsWith(`weir ${name}`), name)
      assertNarrow(help.stdout)
      for (const flag of ['--json', '--help']) assert.ok(help.stdout.includes(flag), `${name} ${flag}`)
    }
  })

  it('is shown without a command; an unknown command is an error', async () => {
    const nothing = await commandLine([])
    assert.equal(nothing.code, 0)
    assert.match(nothing.stdout, /^weir <command>/)
    const unknown = await commandLine(['sevre'])
    assert.deepEqual([unknown.code, unknown.stdout], [2, ''])
    assert.equal(unknown.stderr, 'weir: there is no command "sevre"; did you mean "serve"? See: weir --help\n')
    assert.equal(
      (await commandLine(['key'])).stderr,
      'weir: there is no command "key"; did you mean "keys"? See: weir --help\n',
    )
    assert.equal((await commandLine(['zzz'])).stderr, 'weir: there is no command "zzz". See: weir --help\n')
    assert.equal((await commandLine(['constructor'])).code, 2)
  })
})

describe('a command', () => {
  it('[K2, K3] prints one JSON object with --json, and a table without', async () => {
    const json = async (...args: string[]): Promise<Record<string, unknown>> => {
      const result = await weir(...args, '--json')
      assert.deepEqual([result.code, result.stderr], [0, ''], args.join(' '))
      assert.equal(result.stdout.trimEnd().split('\n').length, 1, 'one line')
      return result.json()
    }
    const workspace = await json('workspaces', 'create', 'acme')
    assert.deepEqual(Object.keys(workspace), [
      'id',
      'name',
      'requests_per_minute',
      'tokens_per_minute',
      'spend_limit',
      'spend_limit_kind',
      'buyer',
      'created',
    ])
    assert.deepEqual(await json('workspaces', 'list'), { object: 'list', data: [workspace] })
    const changed = await json('workspaces', 'set', 'acme', '--requests-per-minute', '5')
    assert.deepEqual(changed, { ...workspace, requests_per_minute: 5 })
    assert.deepEqual(await json('workspaces', 'set', 'acme', '--requests-per-minute', 'default'), workspace)

    const key = await json('keys', 'create', '--workspace', 'acme')
    assert.deepEqual(Object.keys(key), ['id', 'key', 'workspace'])
    const revoked = await json('keys', 'revoke', String(key['id']))
    const facts = ['id', 'workspace', 'redacted', 'name', 'created', 'expires_at', 'last_used_at', 'revoked']
    const limits = [
      'manage_keys',
      'requests_per_minute',
      'tokens_per_minute',
      'spend_per_day',
      'spend_per_month',
      'allowed_models',
      'allowed_endpoints',
      'allowed_addresses',
    ]
    assert.deepEqual(Object.keys(revoked), [...facts, ...limits])
    assert.deepEqual(await json('keys', 'list', '--workspace', 'acme'), { object: 'list', data: [revoked], next: null })

    const offered = (await json('models', 'list')) as { data?: Record<string, unknown>[] }
    assert.equal(offered.data?.[0]?.['id'], 'meta/test-8b')
    const own = ['--workspace', 'acme', '--model', 'test-8b']
    const pricing = { input_per_million: '0.10', output_per_million: '0.30' }
    const flags = ['--input-per-million', '0.10', '--output-per-million', '0.30']
    const set = await json('prices', 'set', ...own, ...flags)
    assert.deepEqual(set, { model: 'meta/test-8b', workspace: 'acme', pricing })
    const priced = await json('prices', 'list', '--workspace', 'acme')
    // A price that is left out stays at the list price.
    const allPrices = { ...pricing, cached_input_per_million: '0.05' }
    assert.deepEqual(priced, { object: 'list', data: [{ model: 'meta/test-8b', pricing: allPrices }] })
    const sizes = ['--per-image', '0.04', '--image-prices', '1024x1792=0.08,1024x1792:hd=0.12']
    assert.deepEqual((await json('prices', 'set', ...own, ...sizes))['pricing'], {
      per_image: '0.04',
      image_prices: [
        { size: '1024x1792', per_image: '0.08' },
        { size: '1024x1792', quality: 'hd', per_image: '0.12' },
      ],
    })
    assert.equal((await json('prices', 'clear', ...own))['pricing'], null)
    assert.deepEqual(await json('usage', '--workspace', 'acme'), { object: 'list', data: [], total_pico_aud: '0' })

    const table = await weir('workspaces', 'list')
    assert.match(table.stdout, /^NAME +PER MINUTE +CREATED\nacme +600  \d{4}-\d\d-\d\d\n$/)
  })

  it('exits with 2 on a usage error and with 1 on any other failure, and explains it in one line', async () => {
    await weir('workspaces', 'create', 'taken')
    const mistakes: readonly [string, code: number, message: RegExp][] = [
      ['workspaces', 2, /choose an action: create, list, show or set/],
      ['workspaces destroy taken', 2, /choose an action/],
      ['workspaces create', 2, /give the name of the workspace/],
      ['workspaces create two words', 2, /unexpected argument "words"; put names with spaces in quotes/],
      ['workspaces list taken', 2, /unexpected argument "taken"/],
      ['workspaces show', 2, /give the name of the workspace/],
      ['workspaces show none', 1, /There is no workspace "none"/],
      ['models list all', 2, /unexpected argument "all"/],
      ['usage 2026-11 --workspace taken', 2, /unexpected argument "2026-11"/],
      ['workspaces create a/b', 1, /A workspace name must be 1 to 64 letters/],
      ['workspaces create taken', 1, /A workspace named "taken" already exists/],
      ['workspaces set taken', 2, /give something to change, such as --requests-per-minute N/],
      ['workspaces set taken --soft --hard', 2, /give either --soft or --hard/],
      ['workspaces set taken --soft', 1, /'spend_limit_kind' needs a spend limit/],
      ['workspaces set taken --spend-limit none --hard', 1, /'spend_limit_kind' needs a spend limit/],
      ['workspaces set taken --requests-per-minute many', 1, /must be an integer from 1 to 100000000/],
      ['workspaces set none --requests-per-minute 5', 1, /There is no workspace "none"/],
      ['keys', 2, /choose an action: create, list, set or revoke/],
      ['keys create', 2, /--workspace is required/],
      ['keys create --workspace none', 1, /There is no workspace "none"/],
      ['keys revoke', 2, /give the id of the key/],
      ['keys revoke key_none', 1, /There is no key "key_none"/],
      ['keys create --workspace taken --expires 2020-01-01', 1, /A key must expire in the future/],
      ['keys create --workspace taken --expires soon', 1, /'expires' must be a date such as/],
      ['keys list all', 2, /unexpected argument "all"/],
      ['keys list --nonsense', 2, /Unknown option '--nonsense'/],
      ['keys list --workspace', 2, /Option '--workspace' argument is ambiguous/],
      ['models', 2, /choose an action: list/],
      ['prices set --workspace taken --model test-8b', 2, /give at least one price/],
      ['prices set --workspace taken --model none --per-image 1', 1, /The model 'none' is not in the catalog/],
      ['prices set --workspace taken --model test-8b --per-image cheap', 2, /per_image must be an amount in AUD/],
      [
        'prices set --workspace taken --model test-8b --image-prices 64x64:best=1',
        2,
        /quality must be one of standard, hd/,
      ],
      [
        'prices set --workspace taken --model test-8b --image-prices 64x64=1',
        2,
        /per_image must be set when image_prices is set/,
      ],
      ['usage', 2, /--workspace is required/],
      ['usage --workspace taken --from yesterday', 1, /'from' must be a date such as/],
      ['usage --workspace taken --to 2026-02-30', 1, /'to' must be a date such as/],
    ]
    for (const [line, code, message] of mistakes) {
      const error = await failureOf([...line.split(' '), '--json', '--config', config])
      assert.match(error.message, message, line)
      assert.doesNotMatch(error.message, /\n/, 'one line')
      assert.equal(error instanceof UsageError ? 2 : 1, code, line)
      assert.ok(error instanceof UsageError || error instanceof ApiError, `${line}: its stack would be shown`)
    }
    // Starting a process for each would be slow, so a few stand for all of them.
    for (const [line, code, message] of [mistakes[0]!, mistakes[6]!]) {
      const result = await cli([...line.split(' '), '--json', '--config', config])
      assert.deepEqual([result.code, result.stdout], [code, ''], line)
      assert.match(result.stderr, message)
      assert.match(result.stderr, /^weir: [^\n]*\n$/, 'one line, no stack')
      assert.equal(result.stderr.endsWith(`. See: weir ${line.split(' ')[0]} --help\n`), code === 2)
    }
  })

  it('prints all of a list that is larger than a pipe buffer', async () => {
    const data = join(folder, 'long')
    const store = await openStore({ dataDir: data, exclusive: false })
    const count = 1500
    await Promise.all(
      Array.from({ length: count }, (_, index) =>
        store.createWorkspace({ id: `ws_${index}`, name: `name ${index}`, requestsPerMinute: null, createdAt: index }),
      ),
    )
    await store.close()
    const command = ['workspaces', 'list', '--json', '--data', data]
    const list = (await cli([...command, '--config', config])).json<{ data: object[] }>()
    assert.equal(list.data.length, count)

    // It is not an error when the reader stops early.
    const child = startCli([...command, '--config', config])
    const stderr = collect(child.stderr)
    child.stdout?.once('data', () => child.stdout?.destroy())
    const code = await new Promise((resolve) => child.once('close', resolve))
    assert.deepEqual([code, stderr()], [0, ''])
  })

  it('ignores the service.json of a killed service, and sends nothing to a process that now listens there', async (t) => {
    let calls = 0
    const answer = (socket: Socket): void => {
      calls++
      socket.destroy()
    }
    const data = join(folder, 'killed')
    mkdirSync(data)
    const socket = join(data, 'weir.sock')
    const strangers = [createServer(answer).listen(0, '127.0.0.1'), createServer(answer).listen(socket)] as const
    t.after(() => strangers.forEach((stranger) => stranger.close()))
    await Promise.all(strangers.map((stranger) => once(stranger, 'listening')))
    const adminUrl = `http://127.0.0.1:${(strangers[0].address() as AddressInfo).port}`
    // Notes of earlier versions had the token in them.
    const note = { url: adminUrl, adminUrl, socket, operatorToken: 'x'.repeat(16), pid: 1 }
    writeFileSync(join(data, 'service.json'), JSON.stringify(note))
    const result = await weir('workspaces', 'create', 'after', '--json', '--data', data)
    assert.equal(result.json()['name'], 'after')
    assert.equal(calls, 0, 'a stranger was told')
  })
})

describe('the exit code', () => {
  it('is 2 for an unknown option, whatever the command', async () => {
    const { stdout } = await commandLine(['--help'])
    const named = [...stdout.matchAll(/^ {2}(\w+) +\S/gm)].map((match) => match[1] ?? '')
    assert.ok(named.length > 10)
    for (const name of named) {
      const result = await weir(name, '--nonsense')
      assert.deepEqual([result.code, result.stdout], [2, ''], name)
      assert.equal(result.stderr, `weir: Unknown option '--nonsense'. See: weir ${name} --help\n`)
    }
  })

  it('of weir reconcile is 1 as long as there is a discrepancy', async (t) => {
    const books = await testBooks(Date.UTC(2026, 10, 15))
    t.after(() => books.close())
    const acme = await books.workspace('acme')
    const version = await books.price('meta/x', { input_per_million: '1' }, 0)
    const row = await books.row(acme, 'meta/x', version, books.now, { inputTokens: 5 })
    await books.settle([row])
    const reconcile = (...flags: string[]) => weir('reconcile', '--data', books.dataDir, ...flags)
    const fits = await reconcile()
    assert.deepEqual([fits.code, fits.stderr], [0, ''])
    assert.equal(
      fits.stdout,
      '1 row in 1 workspace, A$0.000005; 0 invoices and adjustment notes\n✔ Everything agrees.\n',
    )

    await books.settle([{ ...row, requestId: 'wrong', amount: row.amount + 1n }])
    const [text, json] = await Promise.all([reconcile(), reconcile('--json')])
    assert.deepEqual([text.code, json.code], [1, 1])
    assert.match(text.stdout, /\n✖ amount: acme, wrong\n {4}\S/)
    const { fits: isFitting, problems } = JSON.parse(json.stdout) as { fits: boolean; problems: { subject: string }[] }
    assert.deepEqual([isFitting, problems.map(({ subject }) => subject)], [false, ['wrong']])
    for (const { stderr } of [text, json]) assert.equal(stderr, 'weir: problems found; see above\n')
  })

  it('of weir doctor is 1 as long as there is a problem', async (t) => {
    interface Findings {
      readonly findings: readonly { name: string; state: string; detail: string; advice?: string }[]
    }
    const engine = await scriptedEngine()
    t.after(() => engine.close())
    const file = join(folder, 'doctor.yaml')
    const examine = async (...urls: string[]): Promise<{ code: number | null; findings: Findings['findings'] }> => {
      writeFileSync(file, stringify({ server, models: [modelEntry(urls)] }))
      const result = await commandLine(['doctor', '--json', '--config', file, '--data', join(folder, 'doctor')])
      return { code: result.code, ...(JSON.parse(result.stdout) as Findings) }
    }
    const dead = await examine(engine.url, 'http://127.0.0.1:9/v1')
    assert.equal(dead.code, 1)
    assert.deepEqual(
      dead.findings.filter(({ name }) => name === 'engine').map(({ state, detail }) => [state, detail]),
      [
        ['ok', engine.url],
        ['problem', 'http://127.0.0.1:9/v1 does not answer'],
      ],
    )
    const text = await commandLine(['doctor', '--config', file, '--data', join(folder, 'doctor')])
    assert.equal(text.code, 1)
    assert.match(text.stdout, /^✖ engine: http:\/\/127\.0\.0\.1:9\/v1 does not answer\n {4}→ start the engine/m)
    assert.equal(text.stderr, 'weir: problems found; see above\n')
    // The machine may have other problems, such as a disk that is nearly full.
    const well = await examine(engine.url)
    assert.equal(well.code, well.findings.some(({ state }) => state === 'problem') ? 1 : 0)
    assert.ok(well.findings.every(({ name, state }) => name !== 'engine' || state === 'ok'))
  })

  it('is 1 when the output cannot be written', { skip: !existsSync('/dev/full') }, async () => {
    const bin = fileURLToPath(new URL('../../bin/weir.mjs', import.meta.url))
    const command = [process.execPath, bin, 'workspaces', 'list', '--config', config]
    const child = spawn('sh', ['-c', '"$0" "$@" > /dev/full', ...command], { stdio: ['ignore', 'ignore', 'pipe'] })
    const stderr = collect(child.stderr)
    assert.equal(await new Promise((resolve) => child.once('close', resolve)), 1)
    assert.match(stderr(), /^weir: the output could not be written: ENOSPC[^\n]*\n$/)
  })
})

describe('weir usage', () => {
  const refusedIds: string[] = []
  let engine: ScriptedEngine
  let service: TestWeir

  before(async () => {
    engine = await scriptedEngine()
    service = await startWeir(stageConfig([engine.url]))
    engine.script = { promptTokens: 10, cachedTokens: 4 }
    await (await service.chat({})).text()
    await (await service.chat({ stream: true })).text()
    engine.script = { refuse: { status: 500, body: {} } }
    await (await service.chat({})).text()
    for (const body of [{ temperature: 9 }, { temperature: 9 }, { model: 'none' }]) {
      const response = await service.chat(body)
      refusedIds.push(response.headers.get('x-request-id') ?? '')
      await response.text()
    }
    await (await service.chat({}, { key: null })).text()
  })
  after(async () => {
    await service.stop()
    await engine.close()
  })

  const usageCommand = (...args: string[]): string[] => [
    'usage',
    ...args,
    '--config',
    service.configFile,
    '--data',
    service.dataDir,
  ]
  const usageOf = (...args: string[]): Promise<CliResult> => commandLine(usageCommand(...args))
  const own = ['--workspace', 'default']

  it('[M2, M5] lists the rows of a running service, with amounts as strings', async () => {
    const result = (await usageOf(...own, '--json')).json<{
      object: string
      data: Record<string, unknown>[]
      total_pico_aud: string
    }>()
    assert.equal(result.object, 'list')
    const amount = String(6n * 200_000n + 4n * 50_000n + 3n * 600_000n)
    assert.deepEqual(
      result.data.map((row) => [row['outcome'], row['input_tokens'], row['amount_pico_aud']]),
      [
        ['completed', 10, amount],
        ['completed', 10, amount],
        ['engine_failed', 0, '0'],
      ],
    )
    assert.deepEqual(
      result.data.map((row) => [row['http_status'], row['error_code']]),
      [
        [200, null],
        [200, null],
        [502, 'upstream_error'],
      ],
    )
    const [first] = result.data
    const ids = (await service.ledger()).map((row) => row.requestId)
    assert.deepEqual(
      result.data.map((row) => row['request_id']),
      ids,
    )
    const { model, cached_input_tokens: cached, output_tokens: output, images, audio_ms: audio } = first ?? {}
    assert.deepEqual([model, cached, output, images, audio], ['meta/test-8b', 4, 3, 0, 0])
    assert.equal(result.total_pico_aud, String(2n * BigInt(amount)))
  })

  it('filters by days in Sydney or by exact times', async () => {
    const count = async (...args: string[]): Promise<number> =>
      (await usageOf(...own, '--json', ...args)).json<{ data: object[] }>().data.length
    const day = (offset: number): string => sydneyDate(Date.now() + offset * 86_400_000)
    assert.equal(await count('--from', day(-1), '--to', day(1)), 3)
    assert.equal(await count('--to', day(-2)), 0)
    assert.equal(await count('--from', day(2)), 0)
    assert.equal(await count('--from', new Date(Date.now() - 3_600_000).toISOString()), 3)
  })

  it('[X5] refused counts the refused requests by key and code, and lists the newest', async () => {
    interface Refused {
      readonly groups: readonly Record<string, unknown>[]
      readonly newest: readonly Record<string, unknown>[]
    }
    const all = (await usageOf('refused', '--json')).json<Refused>()
    assert.deepEqual(
      all.groups.map((it) => [it['workspace'], it['http_status'], it['error_code'], it['requests']]),
      [
        ['default', 400, 'invalid_value', 2],
        [null, 401, 'missing_api_key', 1],
        ['default', 404, 'model_not_found', 1],
      ],
    )
    assert.equal(all.newest.length, 4)
    const ofDefault = (await usageOf('refused', ...own, '--json')).json<Refused>()
    assert.deepEqual(
      ofDefault.newest.map((it) => it['request_id']),
      refusedIds.toReversed(),
    )
    const none = await usageOf('refused', '--to', '2026-01-01')
    assert.equal(none.stdout, 'No requests were refused.\n')
    const { stdout } = await usageOf('refused')
    assert.match(stdout, /^WORKSPACE +KEY +STATUS +CODE +REQUESTS\ndefault +key_\w+ +400 +invalid_value +2\n/)
    assert.match(stdout, /4 refused requests\. The newest:\n\nTIME \(SYDNEY\)/)
  })

  it('shows one request by its id: its row, or why it was refused', async () => {
    const row = (await service.ledger()).at(-1)!
    const { stdout } = await usageOf(row.requestId)
    assert.match(stdout, /^outcome +engine_failed\nstatus +502\nerror +upstream_error\n/m)
    const refused = await usageOf(refusedIds[0]!)
    assert.match(refused.stdout, /^status +400\nerror +invalid_value\nparameter +temperature\nreason +A field/m)
    const { object, error_code: code } = (await usageOf(refusedIds[2]!, '--json')).json()
    assert.deepEqual([object, code], ['refused_request', 'model_not_found'])
    const nothing = await usageOf('nothing')
    assert.equal(nothing.code, 1)
    assert.match(nothing.stderr, /^weir: there is no request nothing; of refused requests, only the newest/)
  })

  it('prints a table and a total', async () => {
    const { stdout } = await usageOf(...own)
    const id = '\\n  [0-9a-z]{32}'
    const time = '\\n\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d  meta/test-8b  '
    const answer = `${time}10 \\(4 cached\\) in, 3 out  A\\$0\\.0000032${id}`
    const rows = `${answer}${answer}${time}nothing +A\\$0\\.0000000${id}  engine_failed \\(502 upstream_error\\)`
    const expected = `^TIME \\(SYDNEY\\) +MODEL +USAGE +COST${rows}\\n\\n3 rows, A\\$0\\.0000064 excluding GST\\n$`
    assert.match(stdout, new RegExp(expected))
  })
})

describe('weir serve', () => {
  it('refuses to start on a mistake in its file, naming the line, the key and what is allowed', async () => {
    const broken = join(folder, 'broken.yaml')
    writeFileSync(broken, 'server:\n  port: 8080\n  prot: 80\n')
    for (const command of [['serve'], ['models', 'list'], ['keys', 'list']]) {
      const args = [...command, '--config', broken, '--data', join(folder, 'broken')]
      const { code, stdout, stderr } = await commandLine(args)
      assert.deepEqual([code, stdout], [1, ''])
      assert.ok(
        stderr.startsWith(`weir: ${broken}:3: server.prot: is not a known key; allowed here: host, port, `),
        stderr,
      )
      assert.match(stderr, /^[^\n]*\n$/, 'one line')
    }
    const badModel = join(folder, 'bad-model.yaml')
    writeFileSync(badModel, stringify({ server, models: [modelEntry([], { context_length: 0 })] }))
    const result = await commandLine(['serve', '--config', badModel, '--data', join(folder, 'broken')])
    assert.equal(result.code, 1)
    assert.match(result.stderr, /^weir: \S+bad-model\.yaml:\d+: models\[0\]\.context_length: must be an integer/)
    assert.match(result.stderr, /^[^\n]*\n$/, 'one line')
  })

  it('refuses wrong options and environment variables', async () => {
    const wrong: readonly [string[], NodeJS.ProcessEnv, RegExp][] = [
      [['--port', 'http'], {}, /^weir: --port: must be a port from 0 to 65535, but is "http"\n$/],
      [[], { WEIR_PORT: '70000' }, /^weir: WEIR_PORT: must be a port/],
      [['--config', 'gone.yaml'], {}, /^weir: gone\.yaml does not exist\n$/],
      [[], { WEIR_DATABASE_URL: 'mysql://db' }, /^weir: WEIR_DATABASE_URL: [^\n]*\n$/],
    ]
    for (const [args, environment, message] of wrong) {
      const result = await commandLine(['serve', '--data', join(folder, 'wrong'), ...args], { environment })
      assert.equal(result.code, 1, result.stdout)
      assert.match(result.stderr, message)
    }
  })

  it('exits with a one-line message when its port or its data directory is in use', async (t) => {
    const holder = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => holder.once('listening', resolve))
    const port = String((holder.address() as AddressInfo).port)
    const taken = await commandLine(['serve', '--port', port, '--data', join(folder, 'taken'), '--config', config])
    holder.close()
    assert.equal(taken.code, 1, taken.stdout)
    assert.match(
      taken.stderr,
      /^weir: port \d+ on 127\.0\.0\.1 is in use \(the port comes from --port\); stop [^\n]*\n$/,
    )

    const service = await startWeir({ models: [] })
    t.after(() => service.stop())
    const second = await commandLine(['serve', '--data', service.dataDir, '--config', config])
    assert.equal(second.code, 1, second.stdout)
    assert.match(second.stderr, /^weir: another service is running on [^\n]*\n$/)
  })
})
