import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { stringify } from 'yaml'
import { cli, collect, startCli, startNote } from '../support/cli.ts'
import { commandLine } from '../support/command-line.ts'
import { inLongRun } from '../support/long-run.ts'
import { scriptedEngine } from '../support/scripted-engine.ts'
import { modelEntry, OPERATOR_TOKEN, startWeir, type TestWeir } from '../support/weir.ts'
import { weirProcess } from '../support/weir-process.ts'
import { eventually } from '../support/waiting.ts'

interface Shown {
  readonly service: string | null
  readonly settings: readonly {
    key: string
    value: unknown
    source: string
    pending?: { value: unknown; needs: string }
  }[]
}

const models = [modelEntry(['http://127.0.0.1:9/v1'])]
const server = { port: 0, admin_port: 0, drain_ms: 0 }

async function serve(t: TestContext, config: object): Promise<TestWeir> {
  const weir = await startWeir({ server, models, ...config })
  t.after(() => weir.stop())
  return weir
}

describe('a change of weir.yaml', () => {
  it('is applied by the running service, or reported as needing a restart', async (t) => {
    const weir = await weirProcess({
      server,
      log: { level: 'info' },
      models,
      rate_limit: { requests_per_minute: 50 },
    })
    t.after(() => weir.remove())
    const file = weir.dataDir.replace(/data$/, 'weir.yaml')
    const limitNow = async (): Promise<string | null> => {
      const response = await fetch(`${weir.base}/models`, { headers: { authorization: `Bearer ${weir.key}` } })
      await response.text()
      return response.headers.get('x-ratelimit-limit')
    }
    assert.equal(await limitNow(), '50')
    const changed = {
      server: { ...server, port: 18_099 },
      rate_limit: { requests_per_minute: 70 },
      seller: { name: 'Example Pty Ltd', abn: '51 824 753 556' },
      images: { max_side_px: 100 },
    }
    writeFileSync(file, stringify({ log: { level: 'info' }, models, ...changed }))
    await eventually('the limit is taken', async () => (await limitNow()) === '70', 30_000)
    const lines = (): Record<string, unknown>[] =>
      weir
        .log()
        .split('\n')
        .filter((line) => line.endsWith('}'))
        .map((line) => JSON.parse(line) as Record<string, unknown>)
    const line = (msg: string): unknown => lines().find((it) => it['msg'] === msg)?.['settings']
    await eventually('both are logged', () => line('changed settings that need a restart') !== undefined, 30_000)
    assert.deepEqual(line('settings changed'), ['rate_limit.requests_per_minute'])
    assert.deepEqual(line('changed settings that need a restart'), [
      'server.port',
      'images.max_side_px',
      'seller.name',
      'seller.abn',
    ])

    const shown = (await commandLine(['config', '--config', file, '--data', weir.dataDir, '--json'])).json<Shown>()
    const setting = (key: string) => shown.settings.find((it) => it.key === key)
    assert.equal(shown.service, weir.base.replace('/api/v1', ''))
    assert.deepEqual(
      [setting('rate_limit.requests_per_minute')?.value, setting('rate_limit.requests_per_minute')?.pending],
      [70, undefined],
    )
    assert.deepEqual(
      [setting('server.port')?.value, setting('server.port')?.pending],
      [0, { value: 18_099, needs: 'restart' }],
    )
    const text = await commandLine(['config', '--config', file, '--data', weir.dataDir])
    assert.match(text.stdout, /\n! server\.port is 18099 in the file: needs a restart\n/)
    assert.match(text.stdout, /\n! seller\.name is Example Pty Ltd in the file: needs a restart\n/)
  })

  it('of weir.yaml beside a separate catalog is applied too; a mistake in it is refused', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-catalog-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const catalog = join(folder, 'catalog.yaml')
    writeFileSync(catalog, stringify({ models }))
    const weir = await startWeir({ server, catalog })
    t.after(() => weir.stop())
    const file = weir.configFile
    const write = (config: object): void => weir.writeConfig({ server, catalog, ...config })
    write({ rate_limit: { requests_per_minute: 7 } })
    const reload = () => commandLine(['reload', '--config', file, '--data', weir.dataDir])
    assert.equal((await reload()).stdout, 'Reloaded: 1 model.\n')
    assert.equal((await weir.call('/models')).headers.get('x-ratelimit-limit'), '7')
    write({ rate_limit: { requests_per_minute: 'many' } })
    const refused = await commandLine(['reload', '--data', weir.dataDir])
    assert.equal(refused.code, 1)
    assert.match(
      refused.stderr,
      /^weir: \S+weir\.yaml:\d+: rate_limit\.requests_per_minute: must be an integer[^\n]*\n$/,
    )
  })
})

describe('a first weir.yaml beside a service that started without one', () => {
  it('needs a restart, which the log, weir reload, weir config and the preview of the catalog report', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-first-file-'))
    const nowhere = 'http://127.0.0.1:1/'
    const environment = {
      HOME: folder,
      WEIR_PORT: '0',
      WEIR_ADMIN_PORT: '0',
      WEIR_OPERATOR_TOKEN: OPERATOR_TOKEN,
      npm_config_registry: nowhere,
      PIP_INDEX_URL: nowhere,
      HF_ENDPOINT: nowhere,
    }
    const service = startCli(['serve'], { cwd: folder, environment })
    const [stdout, log] = [collect(service.stdout), collect(service.stderr)]
    const ended = new Promise((resolve) => service.once('exit', resolve))
    t.after(async () => {
      service.kill('SIGKILL')
      await ended
      rmSync(folder, { recursive: true, force: true })
    })
    await eventually('the service runs', () => stdout().endsWith('\n'), 60_000)
    const run = (...args: string[]) => commandLine(args, { cwd: folder })
    // Its port and its token are variables that this command does not have.
    assert.doesNotMatch((await run('config')).stdout, /needs a/)
    assert.match((await run('reload')).stdout, /^Reloaded: \d+ models\.\n$/)

    const file = join(folder, 'weir.yaml')
    writeFileSync(file, stringify({ models, images: { max_side_px: 100 } }))
    await eventually('the warning is in the log', () => log().includes('which only a restart takes'), 60_000)
    const reload = await run('reload')
    assert.equal(reload.code, 1)
    assert.equal(
      reload.stdout,
      `! images.max_side_px is 100 in the file: needs a restart\n! catalog is ${file} in the file: needs a restart\n`,
    )
    assert.equal(reload.stderr, 'weir: the service goes on with its old catalog; restart it to take the new one\n')
    assert.ok((await run('config')).stdout.includes(`! catalog is ${file} in the file: needs a restart\n`))

    const { operator } = startNote(stdout())
    const response = await fetch(`${operator}/admin/v1/catalog/preview`, {
      method: 'POST',
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
    })
    const preview = (await response.json()) as { file: string | null; needs_restart: object[]; changes: object[] }
    assert.deepEqual(preview.needs_restart, [
      { key: 'images.max_side_px', value: '100' },
      { key: 'catalog', value: file },
    ])
    assert.deepEqual([preview.file, preview.changes], [null, []])
  })
})

describe('weir config beside a service', () => {
  it('raises no alarm, however the service and the command name the same file', async (t) => {
    const weir = await serve(t, {})
    const file = weir.configFile
    const folder = dirname(file)
    // The service got the whole path and no variable.
    const environment = { WEIR_PORT: '1', WEIR_HOST: '::1' }
    for (const args of [['--config', file], ['--config', 'weir.yaml'], []]) {
      const shown = await commandLine(['config', ...args, '--data', weir.dataDir, '--json'], {
        cwd: folder,
        environment,
      })
      const { service, settings } = shown.json<Shown>()
      assert.equal(service, weir.base.replace('/api/v1', ''))
      assert.deepEqual(
        settings.filter(({ pending }) => pending),
        [],
        args.join(' '),
      )
    }
    // From elsewhere, where there is no file, it is still the file of the service that counts.
    const elsewhere = await commandLine(['config', '--data', weir.dataDir])
    assert.ok(elsewhere.stdout.startsWith(`${file}. In force at `), elsewhere.stdout)
    assert.doesNotMatch(elsewhere.stdout, /needs a/)
  })

  it('reports a mistake in the file of the service', async (t) => {
    const weir = await serve(t, {})
    weir.writeConfig({ server: { port: 'many' }, models })
    const { stdout } = await commandLine(['config', '--data', weir.dataDir])
    assert.match(stdout, /\n! the file has a mistake and is not taken: \S+weir\.yaml:\d+: server\.port: must be/)
  })
})

describe('weir config without a service', () => {
  it('shows each setting with its source, and no secret', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-config-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const file = join(folder, 'weir.yaml')
    writeFileSync(file, stringify({ server, models, operator_token: 'secret-operator-token-01' }))
    const environment = { WEIR_PORT: '8123' }
    const { stdout } = await commandLine(['config', '--config', file, '--data', join(folder, 'data')], { environment })
    assert.match(stdout, /\. No service is running\.\n\nSETTING +VALUE +FROM\n/)
    assert.match(stdout, /\nserver\.port +8123 +WEIR_PORT\n/)
    assert.match(stdout, /\nserver\.drain_ms +0 +\S+weir\.yaml:\d+\n/)
    assert.match(stdout, /\ndata_dir +\S+ +--data\n/)
    assert.match(stdout, /\nrate_limit\.requests_per_minute +600 +default\n/)
    assert.match(stdout, /\noperator_token +set +\S+weir\.yaml:\d+\n/)
    assert.ok(!stdout.includes('secret-operator-token'))
  })
})

describe('weir chat', () => {
  it('leaves no key behind, and refuses a model that cannot chat in one line', async (t) => {
    const engine = await scriptedEngine()
    t.after(() => engine.close())
    const speech = modelEntry([engine.url], { id: 'openai/whisper', aliases: [], categories: ['audio'] })
    const weir = await serve(t, { models: [modelEntry([engine.url]), speech] })
    const options = ['--data', weir.dataDir]
    const keys = async (): Promise<number> =>
      (await commandLine(['keys', 'list', '--json', ...options])).json<{ data: object[] }>().data.length
    assert.equal(await keys(), 1)
    // Its input is empty, so the chat ends at once.
    const chat = await cli(['chat', ...options])
    assert.deepEqual([chat.code, chat.stderr], [0, ''])
    assert.match(
      chat.stdout,
      /^Chatting with meta\/test-8b\. An empty line ends the chat; \/help lists the commands\.\n/,
    )
    const refusals = {
      'nope/x': 'there is no model "nope/x"; weir models list shows the models. See: weir chat --help',
      'openai/whisper': 'openai/whisper cannot chat: its category is audio. See: weir chat --help',
    }
    for (const [model, message] of Object.entries(refusals)) {
      const refused = await commandLine(['chat', model, ...options])
      assert.deepEqual([refused.code, refused.stdout, refused.stderr], [2, '', `weir: ${message}\n`])
    }
    const unknown = await commandLine(['chat', '--workspace', 'unknown', ...options])
    assert.equal(unknown.stderr, 'weir: There is no workspace "unknown". Choose another one with --workspace.\n')
    assert.equal(await keys(), 1)
  })

  it('has commands, which reach no model, and sends a line after two slashes', inLongRun, async (t) => {
    const engine = await scriptedEngine()
    t.after(() => engine.close())
    const other = modelEntry([engine.url], { id: 'meta/other', aliases: [] })
    const weir = await serve(t, { models: [modelEntry([engine.url]), other] })
    const chat = startCli(['chat', '--data', weir.dataDir], { input: 'pipe' })
    const ended = new Promise<number | null>((resolve) => chat.once('exit', resolve))
    t.after(() => chat.kill('SIGKILL'))
    const shown = collect(chat.stdout)
    const prompts = (): number => shown().split('> ').length - 1
    /** What is shown until the next prompt. */
    const type = async (line: string): Promise<string> => {
      await eventually('it asks', () => prompts() > 0, 30_000)
      const [before, from] = [prompts(), shown().length]
      chat.stdin?.write(`${line}\n`)
      await eventually('it asks again', () => prompts() > before, 30_000)
      return shown().slice(from)
    }
    assert.match(await type('/help'), /\/model \[NAME\]/)
    assert.match(await type('/nonsense'), /There is no command \/nonsense\. \/help lists them; \/\/text/)
    assert.match(await type('/model'), /meta\/test-8b\. .*\n  meta\/test-8b\n  meta\/other\n/)
    assert.match(await type('/model nope/x'), /there is no model "nope\/x"/)
    assert.match(await type('/model meta/other'), /Chatting with meta\/other\./)
    assert.equal(engine.calls.length, 0)
    await type('//etc is a folder')
    await type('and?')
    await type('/clear')
    await type('again')
    chat.stdin?.write('/exit\n')
    assert.equal(await ended, 0)
    const asked = engine.calls.map(({ body }) => (body as { messages: { content: string }[] }).messages)
    assert.deepEqual(
      asked.map((messages) => [messages.length, messages.at(-1)?.content]),
      [
        [1, '/etc is a folder'],
        [3, 'and?'],
        [1, 'again'],
      ],
    )
    const rows = await weir.ledger()
    assert.deepEqual(
      rows.map(({ model }) => model),
      ['meta/other', 'meta/other', 'meta/other'],
    )
  })
})

describe('weir console', () => {
  it('prints a link that signs in once, to the console of the operator or of a workspace', async (t) => {
    const weir = await serve(t, {})
    const link = async (...args: string[]): Promise<URL> =>
      new URL((await commandLine(['console', ...args, '--data', weir.dataDir, '--json'])).json<{ url: string }>().url)
    const signIn = (base: string, { hash }: URL) =>
      fetch(`${base}/console/api/session`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-weir-console': '1' },
        body: JSON.stringify({ link: hash.replace('#link=', '') }),
      })
    const [publicUrl] = weir.base.split('/api/')
    for (const [base, url, again] of [
      [publicUrl ?? '', await link('--workspace', 'default'), /used or has expired\. .*weir console --workspace NAME/],
      [weir.adminUrl, await link(), /used or has expired\. Run weir console for a new one/],
    ] as const) {
      assert.equal(url.origin, base)
      assert.equal((await signIn(base, url)).status, 200)
      const used = await signIn(base, url)
      assert.equal(used.status, 401)
      assert.match(await used.text(), again)
    }
    const unknown = await commandLine(['console', '--workspace', 'unknown', '--data', weir.dataDir])
    assert.deepEqual([unknown.code, unknown.stderr], [1, 'weir: There is no workspace "unknown".\n'])
    const shown = await commandLine(['console', '--data', weir.dataDir])
    assert.match(shown.stdout, /^http:\S+\/console#link=\S+\nIt signs in once, within 30 minutes\.\n$/)
  })
})
