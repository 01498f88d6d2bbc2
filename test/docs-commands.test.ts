import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { copyFileSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parse, stringify } from 'yaml'
import { findMistakes } from '../src/config.ts'
import { openStore } from '../src/store/open.ts'
import { metricTable } from '../src/operate/telemetry/metric-table.ts'
import { cli } from './support/cli.ts'
import { commandLine } from './support/command-line.ts'
import { lastMonth } from './support/last-month.ts'
import { sampleRow } from './support/ledger-samples.ts'
import { scriptedEngine, type ScriptedEngine } from './support/scripted-engine.ts'
import { modelEntry } from './support/weir.ts'
import { weirProcess, type WeirProcess } from './support/weir-process.ts'
import { WEBHOOK_SECRET } from './support/webhook-receiver.ts'

/** The commands and the settings in the documentation work as they stand there. */
const root = fileURLToPath(new URL('..', import.meta.url))
const documents = ['*.md', 'docs/**/*.md'].flatMap((pattern) => globSync(pattern, { cwd: root })).toSorted()

interface CodeBlock {
  readonly file: string
  readonly language: string
  readonly text: string
}

const blocks: readonly CodeBlock[] = documents.flatMap((file) =>
  [...readFileSync(join(root, file), 'utf8').matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(
    ([, language = '', text = '']) => ({ file, language, text }),
  ),
)

/**
 * This test runs the service itself. weir doctor engine needs a real server (test/operate/doctor-engine.test.ts), and weir migrate a
 * PostgreSQL (test/cli/migrate.test.ts).
 */
const isTestedElsewhere = (line: string): boolean => /^weir (serve|migrate|doctor engine)\b/.test(line)

const commands = blocks.flatMap(({ file, text }) =>
  text
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .map((line) => line.replace(/^npx /, '').replace(/\s+#.*$/, ''))
    .filter((line) => line.startsWith('weir ') && !isTestedElsewhere(line))
    .map((line) => ({ file, line })),
)

const model = modelEntry([], { id: 'meta/llama-3.1-8b-instruct', aliases: [] }) as Record<string, unknown>
const onVllm = { engine: { kind: 'vllm', urls: ['http://127.0.0.1:1/v1'], model: 'm' } }
const seller = {
  name: 'Example Pty Ltd',
  abn: '51 824 753 556',
  address: '1 Lock Street',
  public_url: 'https://x.example',
}

describe('the commands in the documentation', () => {
  let engine: ScriptedEngine
  let weir: WeirProcess
  let folder: string
  before(async () => {
    engine = await scriptedEngine()
    const models = [modelEntry([engine.url], { id: model['id'], aliases: [] })]
    // Nothing listens there, so e-mails stay queued.
    const smtp = { host: '127.0.0.1', port: 9, from: 'invoices@example.com' }
    weir = await weirProcess({ server: { port: 0, admin_port: 0, drain_ms: 0 }, seller, smtp, models })
    folder = dirname(weir.dataDir)
    await prepareAcme()
  })
  after(async () => {
    await weir.remove()
    await engine.close()
  })

  /** A workspace with some usage in the last month. */
  async function prepareAcme(): Promise<void> {
    await commandLine(['workspaces', 'create', 'acme', '--data', weir.dataDir])
    await commandLine(['keys', 'create', '--workspace', 'acme', '--data', weir.dataDir])
    const store = await openStore({ dataDir: weir.dataDir, exclusive: false })
    const [workspaces, prices] = await Promise.all([store.workspaces(), store.priceVersions()])
    const acme = workspaces.find(({ name }) => name === 'acme')
    const list = prices.find((price) => price.model === model['id'])
    assert.ok(acme && list)
    const earlier = { ...list, effectiveFrom: lastMonth.from, latest: list.id }
    const [priceVersion] = await store.addPriceVersions([earlier])
    assert.ok(priceVersion)
    const at = lastMonth.from + 10 * 86_400_000
    const usage = { inputTokens: 1_000_000, outputTokens: 0, amount: 200_000_000_000n }
    const known = {
      workspaceId: acme.id,
      model: list.model,
      lane: list.model,
      priceVersion,
      startedAt: at,
      settledAt: at,
    }
    const rows = Array.from({ length: 20 }, (_, index) => sampleRow(`row-${index}`, { ...known, ...usage }))
    await store.addRows(rows)
    await store.close()
  }

  async function keyOfAcme(): Promise<string> {
    const listed = await commandLine(['keys', 'list', '--workspace', 'acme', '--json', '--data', weir.dataDir])
    const { data } = listed.json<{ data: { id: string; revoked_at?: unknown }[] }>()
    return data[0]?.id ?? assert.fail('acme has no key')
  }

  /** Puts the things of this test in the place of those that a reader has. */
  async function adapted(line: string): Promise<string> {
    const names: readonly (readonly [string, string])[] = [
      ['/backups/', `${folder}/`],
      ['2026-10', lastMonth.name],
      ['workspaces create acme', 'workspaces create another'],
      ['--from 2026-11-16 --to 2026-11-20', `--from ${lastMonth.name}-11 --to ${lastMonth.name}-12`],
    ]
    let text = line
    for (const [there, here] of names) text = text.replaceAll(there, here)
    // The service still runs on the other directory, so a restore would refuse it.
    if (text.startsWith('weir restore')) text = text.replace('./data', './restored')
    return text.includes('KEY_ID') ? text.replace('KEY_ID', await keyOfAcme()) : text
  }

  /** The words that a shell makes of a line. */
  function wordsOf(line: string): readonly string[] {
    const { stdout } = spawnSync('/bin/sh', ['-c', `weir() { printf '%s\\0' "$@"; }; ${line}`], { encoding: 'utf8' })
    return stdout.split('\0').slice(0, -1)
  }

  it('are found', () => assert.ok(commands.length > 20, `${commands.length} commands`))

  // One after the other, because a document's later commands use what its earlier ones made.
  for (const { file, line } of commands) {
    it(`${file}: ${line}`, async () => {
      const words = wordsOf(await adapted(line))
      // A chat reads from its terminal. Here that is empty.
      const { code, stdout, stderr } = await (words[0] === 'chat' ? cli : commandLine)(words, { cwd: folder })
      assert.equal(code, 0, stdout + stderr)
    })
  }
})

describe('the settings in the documentation', () => {
  let folder: string
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'weir-docs-'))
    mkdirSync(join(folder, 'fonts'))
    writeFileSync(join(folder, 'fonts', 'NotoSansCJK-Regular.ttc'), '')
    mkdirSync(join(folder, 'tls'))
    copyFileSync('test/fixtures/tls/first.cert.pem', join(folder, 'tls', 'fullchain.pem'))
    copyFileSync('test/fixtures/tls/first.key.pem', join(folder, 'tls', 'privkey.pem'))
  })
  after(() => rmSync(folder, { recursive: true }))

  for (const { file, text } of blocks.filter(({ language }) => language === 'yaml')) {
    const content = parse(text) as Record<string, unknown>
    if ('groups' in content) {
      it(`${file} alerts on metrics that exist`, () => {
        const names = text.match(/\bweir_\w+/g) ?? []
        assert.deepEqual(
          names.filter((name) => !(name in metricTable)),
          [],
        )
      })
      continue
    }
    it(`${file} has settings that weir check accepts: ${Object.keys(content).join(', ')}`, () => {
      const config = join(folder, 'weir.yaml')
      writeFileSync(config, stringify(completed(content)))
      const secrets = {
        SMTP_PASSWORD: 'secret',
        OIDC_SECRET: 'secret',
        OPS_WEBHOOK_SECRET: WEBHOOK_SECRET,
        ACME_WEBHOOK_SECRET: WEBHOOK_SECRET,
      }
      assert.deepEqual(findMistakes({ config }, secrets).mistakes, [])
    })
  }
})

/** A whole weir.yaml around a part of one. */
function completed(content: Record<string, unknown>): object {
  const complete = modelEntry(['http://127.0.0.1:1/v1'], { id: model['id'] }) as Record<string, unknown>
  const { pricing, limits, engine, models = [{}], ...others } = content
  const whole = (part: object): object => ({
    ...complete,
    ...(pricing ? { categories: ['image'], pricing } : {}),
    serverless: {
      ...(complete['serverless'] as object),
      ...(limits ? { limits } : {}),
      ...(engine ? { engine } : {}),
    },
    ...part,
  })
  // An adapter is on the engine of another model.
  const parts = (models as { adapter_of?: string }[]).flatMap((part) =>
    part.adapter_of === undefined
      ? [whole(part)]
      : [part, modelEntry([], { id: part.adapter_of, aliases: [], context_length: 32_768, serverless: onVllm })],
  )
  return { ...others, models: parts }
}
