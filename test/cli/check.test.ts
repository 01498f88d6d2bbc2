import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { stringify } from 'yaml'
import { collect, startCli } from '../support/cli.ts'
import { commandLine } from '../support/command-line.ts'
import { openFiles } from '../support/open-files.ts'
import { eventually } from '../support/waiting.ts'
import { modelEntry } from '../support/weir.ts'

const folder = mkdtempSync(join(tmpdir(), 'weir-check-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const engine = ['http://127.0.0.1:9/v1']

describe('weir check', () => {
  it('lists every mistake of a file at once, in the order of its lines', async () => {
    const config = join(folder, 'wrong.yaml')
    writeFileSync(
      config,
      `server:
  prot: 80
  port: http
seller: { name: Example, abn: "51 824 753 557" }
rate_limit:
  requests_per_minute: 0
models:
  - id: meta/one
    categories: [llm, poetry]
    context_length: 10
  - id: meta/two
    categories: [llm]
    context_length: 10
    max_completion_tokens: 11
    tokenizer: none
    pricing: { input_per_million: "0.0000001" }
    serverless:
      engine: { kind: openai, urls: [http://127.0.0.1:9/v1], api_key_env: NOT_SET }
  - id: meta/two
    categories: [reranker]
    context_length: 10
`,
    )
    const result = await commandLine(['check', '--config', config], { environment: { WEIR_ADMIN_PORT: 'x' } })
    assert.deepEqual([result.code, result.stderr], [1, 'weir: mistakes found; see above\n'])
    const at = (line: number, text: string): string => `✖ ${config}:${line}: ${text}`
    assert.deepEqual(
      result.stdout
        .trimEnd()
        .split('\n')
        .map((line) => line.replace(/(allowed here: host|one of llm|one of cl100k_base|such as "0\.20").*/, '$1')),
      [
        '✖ WEIR_ADMIN_PORT: must be a port from 0 to 65535, but is "x"',
        at(2, 'server.prot: is not a known key; allowed here: host'),
        at(3, 'server.port: must be an integer from 0 to 65535, but is "http"'),
        at(4, 'seller.abn: must be an 11-digit ABN with correct check digits, but is "51 824 753 557"'),
        at(6, 'rate_limit.requests_per_minute: must be an integer from 1 to 100000000, but is 0'),
        at(9, 'models[0].categories[1]: must be one of llm'),
        at(14, 'models[1].max_completion_tokens: must be at most context_length (10)'),
        at(15, 'models[1].tokenizer: must be one of cl100k_base'),
        at(16, 'models[1].pricing.input_per_million: must be an amount in AUD such as "0.20"'),
        at(18, 'models[1].serverless.engine.api_key_env: the environment variable NOT_SET is not set'),
        at(19, 'models[2].id: "meta/two" is already the name of a model'),
        at(19, 'models[2].rerank_schema: is required for a reranker: one of documents, passages'),
        `${config} has 12 mistakes.`,
      ],
    )
    const json = await commandLine(['check', '--config', config, '--json'])
    const found = JSON.parse(json.stdout) as { file: string; mistakes: string[]; warnings: string[] }
    assert.deepEqual([json.code, found.file, found.mistakes.length, found.warnings], [1, config, 11, []])

    // A start says how many more there are.
    const start = await commandLine(['serve', '--config', config, '--data', join(folder, 'none')])
    assert.equal(start.code, 1)
    assert.match(
      start.stderr,
      /^weir: \S+wrong\.yaml:2: server\.prot: .* \(and 10 more mistakes: weir check lists them\)\n$/,
    )
  })

  it('checks a separate catalog too, and names the mistakes in both files', async () => {
    const config = join(folder, 'two-files.yaml')
    writeFileSync(config, 'catalog: ./catalog.yaml\nsever: {}\n')
    writeFileSync(
      join(folder, 'catalog.yaml'),
      'models:\n  - id: nonsense\n    categories: [llm]\n    context_length: 1\n',
    )
    const { stdout } = await commandLine(['check', '--config', config, '--json'])
    const { mistakes } = JSON.parse(stdout) as { mistakes: string[] }
    assert.deepEqual(
      mistakes.map((it) => it.replace(`${folder}/`, '').split(':').slice(0, 3).join(':')),
      ['two-files.yaml:2: sever', 'catalog.yaml:2: models[0].id'],
    )
  })

  it('warns about useless prices and unknown workspaces, and so does a start', async () => {
    const config = join(folder, 'odd.yaml')
    const reserved = [{ workspace: 'acme' }, { workspace: 'ghost' }]
    const models = [
      modelEntry(engine, { dedicated: reserved, visible_to: ['acme', 'ghost', 'phantom'] }),
      modelEntry(engine, { id: 'sd/images', aliases: [], categories: ['image'], pricing: { input_per_million: '1' } }),
    ]
    const server = { port: 0, admin_port: 0 }
    writeFileSync(config, stringify({ server, data_dir: './odd', models }))
    const before = await commandLine(['check', '--config', config])
    assert.equal(before.code, 0)
    assert.match(before.stdout, /^! sd\/images: [^\n]*\n\S+odd\.yaml is correct, with 1 warning\.\n$/)
    assert.ok(!existsSync(join(folder, 'odd')), 'it creates nothing')

    await commandLine(['workspaces', 'create', 'acme', '--config', config, '--json'])
    const { stdout, code } = await commandLine(['check', '--config', config])
    assert.equal(code, 0)
    if (process.platform === 'linux') assert.equal(openFiles(join(folder, 'odd')), 0, 'the ledger is closed')
    assert.equal(
      stdout,
      [
        '! meta/test-8b: capacity is reserved for "ghost", but there is no such workspace',
        '! meta/test-8b: visible_to names "ghost", but there is no such workspace',
        '! meta/test-8b: visible_to names "phantom", but there is no such workspace',
        '! sd/images: input_per_million is never charged for image; give per_image',
        `${config} is correct, with 4 warnings.`,
        '',
      ].join('\n'),
    )

    const child = startCli(['serve', '--config', config])
    const [running, log] = [collect(child.stdout), collect(child.stderr)]
    const ended = new Promise((resolve) => child.once('close', resolve))
    await eventually('it runs', () => running().endsWith('\n') || child.exitCode !== null, 30_000)
    child.kill('SIGTERM')
    await ended
    const logged = log()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { level: number; msg: string })
      .filter(({ level, msg }) => level === 40 && msg.startsWith('catalog: '))
      .map(({ msg }) => msg.replace('catalog: ', '! '))
    assert.deepEqual(logged, stdout.split('\n').slice(0, 4))
  })
})

describe('a command that fails', () => {
  it('reports it in one line, without a stack, whatever went wrong', async () => {
    const data = join(folder, 'failing')
    await commandLine(['workspaces', 'create', 'acme', '--data', data, '--json'])
    const nowhere = join(folder, 'no', 'such', 'file.csv')
    const failures: readonly [string[], string][] = [
      [['usage', '--workspace', 'acme', '--export', 'csv', nowhere], `${nowhere}: there is no such file or directory`],
      [['usage', '--workspace', 'acme', '--export', 'csv', folder], `${folder} is a directory; name a file in it`],
      [
        ['models', 'remove', 'weir/starter-vision'],
        "'weir/starter-vision' is shipped with Weir and cannot be removed.",
      ],
    ]
    for (const [args, message] of failures) {
      const { code, stdout, stderr } = await commandLine([...args, '--data', data])
      assert.deepEqual([code, stdout, stderr], [1, '', `weir: ${message}\n`])
    }
  })
})

describe('a command in a directory without a ledger', () => {
  it('creates none, and reports where it searched and what to do', async () => {
    const cwd = join(folder, 'empty')
    mkdirSync(cwd)
    const nothing = `weir: there is no ledger in ${join(cwd, 'data')}; weir serve creates one, and --data DIR names another directory\n`
    for (const args of [
      ['keys', 'list'],
      ['workspaces', 'create', 'acme'],
      ['usage', '--workspace', 'acme'],
      ['reconcile'],
    ]) {
      const result = await commandLine(args, { cwd })
      assert.deepEqual([result.code, result.stdout, result.stderr], [1, '', nothing], args.join(' '))
    }
    assert.deepEqual(readdirSync(cwd), [])
  })

  it('creates one at the path of --data, and reports it', async () => {
    const data = join(folder, 'named')
    const created = await commandLine(['workspaces', 'create', 'acme', '--data', data])
    assert.deepEqual([created.code, created.stderr], [0, `weir: created a new ledger in ${data}\n`])
    assert.equal((await commandLine(['workspaces', 'list', '--data', data])).stderr, '')
  })
})
