import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { parse, stringify } from 'yaml'
import { ggufFile } from '../../packages/local-models/test/gguf-file.ts'
import { CONTEXT, smallEncoder } from '../../packages/local-models/test/small-encoder.ts'
import { loadConfig } from '../../src/config.ts'
import { engineProblem } from '../../src/local-models/catalog-models.ts'
import { engineLimits, thisMachine } from '../../src/local-models/machine-limits.ts'
import { keepEntries, keptEntries, ownEntry } from '../../src/local-models/own-models.ts'
import { manifest } from '../../src/local-models/installed.ts'
import { commandLine } from '../support/command-line.ts'
import { fileServer, type FileServer, type ServedFile } from './file-server.ts'

interface Added {
  readonly model: string
  readonly entry: Readonly<Record<string, unknown>> & { readonly serverless: { readonly engine: object } }
}

const encoder = smallEncoder(['a', 'river'], 'embedding')
const reranker = smallEncoder(['a', 'river'], 'ranking')
/** The head of a large chat model: it has no weights, but says how large its cache would be. */
const chatHead = (context: number, layers = 64): Buffer =>
  ggufFile(
    {
      'general.architecture': 'llama',
      'general.name': 'Acme Chat',
      'llama.context_length': context,
      'llama.embedding_length': 4096,
      'llama.feed_forward_length': 4096,
      'llama.block_count': layers,
      'llama.attention.head_count': 32,
      'llama.attention.head_count_kv': 32,
      'llama.attention.layer_norm_rms_epsilon': { float: 1e-5 },
      'tokenizer.ggml.model': 'llama',
      'tokenizer.ggml.tokens': ['<unk>', 'a'],
      'tokenizer.chat_template': '{% if tools %}<tool_call>{% endif %}',
    },
    [{ name: 'token_embd.weight', dimensions: [4096, 2], data: new Float32Array(8192) }],
  )

describe('a model of your own', () => {
  let folder: string
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'weir-own-'))
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  const written = (name: string, content: Buffer): string => {
    writeFileSync(join(folder, name), content)
    return join(folder, name)
  }
  const dataOf = (name: string): string => join(folder, `data-${name}`)
  const idsIn = (data: string): readonly string[] =>
    loadConfig({ data }, {})
      .catalog.read()
      .map(({ id }) => id)

  it('gets its entry from its file, is in the catalog without a weir.yaml, and leaves it again', async () => {
    const [file, data] = [written('encoder.gguf', encoder), dataOf('plain')]
    const before = idsIn(data)
    const added = await commandLine(['models', 'add', file, '--id', 'acme/encoder', '--data', data, '--json'])
    assert.equal(added.code, 0, added.stderr)
    const { model, entry } = added.json<Added>()
    assert.equal(model, 'acme/encoder')
    assert.deepEqual([entry['categories'], entry['context_length']], [['embedding'], CONTEXT])
    assert.deepEqual(entry.serverless.engine, { kind: 'embedded', file })
    assert.deepEqual(idsIn(data), [...before, 'acme/encoder'])
    const listed = (await commandLine(['models', 'list', '--data', data, '--json'])).json<{ data: { id: string }[] }>()
    assert.deepEqual(listed.data.find(({ id }) => id === 'acme/encoder')?.id, 'acme/encoder')

    const taken = await commandLine(['models', 'add', file, '--id', 'smollm2', '--data', data])
    assert.match(taken.stderr, /"smollm2" is already the name of a model/)
    const again = await commandLine(['models', 'add', file, '--id', 'acme/encoder', '--context', '100', '--data', data])
    assert.equal(again.code, 0, again.stderr)
    assert.deepEqual(idsIn(data), [...before, 'acme/encoder'])

    const removed = await commandLine(['models', 'remove', 'acme/encoder', '--data', data, '--json'])
    assert.deepEqual(removed.json<object>(), { model: 'acme/encoder', removed: true })
    assert.deepEqual(idsIn(data), before)
    assert.ok(existsSync(file))
  })

  it('is printed for a catalog that is a file, which takes the lines unchanged', async () => {
    const file = written('reranker.gguf', reranker)
    const config = join(folder, 'weir.yaml')
    writeFileSync(config, stringify({ models: [] }))
    const options = ['--config', config, '--data', dataOf('file')]
    const { stdout, stderr, code } = await commandLine(['models', 'add', file, '--id', 'acme/ranker', ...options])
    assert.equal(code, 0, stderr)
    assert.match(stdout, /^# Add this to .*weir\.yaml/)
    writeFileSync(config, stdout)
    const [model] = loadConfig({ config, data: folder }, {}).catalog.read()
    assert.deepEqual([model?.id, model?.rerankSchema], ['acme/ranker', 'documents'])
    assert.equal(model?.serverless?.engine?.model, `gguf-reranker@${CONTEXT}:${file}`)
    assert.equal(engineProblem(model?.serverless?.engine), undefined)
    assert.equal(parse(stdout).models.length, 1)
    rmSync(file)
    assert.equal(engineProblem(model?.serverless?.engine), `there is no file ${file}`)
  })

  it('has an entry for its kind, with as much context as it was trained for, or as is asked for', async () => {
    const supported = (kind: string) =>
      manifest.find(({ loader }) => loader === kind)?.catalog.supported_parameters ?? assert.fail(kind)
    const { parallelRequests } = engineLimits(thisMachine())
    const file = written('kinds.gguf', chatHead(200))
    assert.deepEqual(await ownEntry(file, 'a/chat', 200), {
      id: 'a/chat',
      name: 'Acme Chat',
      categories: ['llm'],
      context_length: 200,
      supported_parameters: supported('gguf-chat'),
      pricing: { input_per_million: '0', output_per_million: '0' },
      serverless: {
        engine: { kind: 'embedded', file },
        limits: {
          token_budget: parallelRequests * 200,
          max_concurrent_requests: parallelRequests,
          max_queue_depth: 16 * parallelRequests,
          max_wait_ms: 120_000,
        },
      },
    })
    await assert.rejects(ownEntry(file, 'a/chat', 201), {
      message: 'The model was trained for a context of 200 tokens; give less with --context.',
    })
    const entryOf = async (content: Buffer) =>
      (await ownEntry(written('kinds.gguf', content), 'a/x')) as unknown as Record<string, unknown>
    assert.equal((await entryOf(chatHead(8193, 1)))['context_length'], 8192)
    assert.equal((await entryOf(chatHead(8191, 1)))['context_length'], 8191)
    const { name: _name, ...ranking } = await entryOf(reranker)
    assert.partialDeepStrictEqual(ranking, {
      categories: ['reranker'],
      rerank_schema: 'documents',
      pricing: { input_per_million: '0' },
    })
    assert.deepEqual((await entryOf(encoder))['rerank_schema'], undefined)
    await assert.rejects(ownEntry('relative.gguf', 'a/x'))
  })

  it('is kept beside the models', () => {
    const models = join(dataOf('kept'), 'models')
    assert.deepEqual(keptEntries(models), [])
    const entry = { id: 'a/x', serverless: { engine: { kind: 'embedded', file: '/x.gguf' }, limits: {} } } as const
    keepEntries(models, [entry])
    assert.deepEqual(keptEntries(models), [entry])
  })

  it('is refused with figures if the memory cannot hold it', async () => {
    const context = 100_000_000
    const file = written('chat.gguf', chatHead(context))
    const add = (...more: readonly string[]) =>
      commandLine(['models', 'add', file, '--id', 'acme/chat', '--data', dataOf('memory'), ...more])
    const refused = await add('--context', '9000000')
    assert.notEqual(refused.code, 0)
    assert.match(
      refused.stderr,
      /With \d+ x 9000000 tokens of context, the model needs \d.* of memory, and models may use \d.*, half of the \d.* of this machine/,
    )
    const short = written('short.gguf', chatHead(200))
    const options = ['--context', '300', '--data', dataOf('memory')]
    const beyond = await commandLine(['models', 'add', short, '--id', 'acme/short', ...options])
    assert.match(beyond.stderr, /trained for a context of 200 tokens/)
    const chat = await add('--context', '100', '--json')
    assert.deepEqual(chat.json<Added>().entry['categories'], ['llm'])
    assert.equal(chat.json<Added>().entry['name'], 'Acme Chat')
    // Sparse: only its length counts.
    truncateSync(file, engineLimits(thisMachine()).memoryBudgetBytes + 1)
    const [engine] = loadConfig({ data: dataOf('memory') }, {})
      .catalog.read()
      .flatMap(({ id, serverless }) => (id === 'acme/chat' ? [serverless?.engine] : []))
    assert.match(engineProblem(engine) ?? '', /^the model needs .* of memory/)
  })

  it('needs a name, a file and a readable one', async () => {
    const run = async (...args: readonly string[]) =>
      (await commandLine(['models', ...args, '--data', dataOf('wrong')])).stderr
    assert.match(await run('add', '/nowhere.gguf'), /give the model a name/)
    assert.match(await run('add', '--id', 'a/b'), /give the file of the model: weir models add FILE\.gguf/)
    const parts = ['1', '2'].map((part) => written(`split-0000${part}-of-00003.gguf`, encoder))
    for (const [path, problem] of [
      ['/nowhere.gguf', /There is no file \/nowhere\.gguf\.$/m],
      [folder, /is no file\. Give the path of a \.gguf file/],
      [written('no.gguf', Buffer.from('not a model')), /no\.gguf cannot be read as a GGUF file: /],
      [written('cut.gguf', encoder.subarray(0, encoder.length / 2)), /cut\.gguf is incomplete: there are \d+ bytes/],
      [parts[0]!, /There is no file .*split-00003-of-00003\.gguf\. All parts of a split model/],
      [parts[1]!, /is a part of a split model; give the first one, .*split-00001-of-00003\.gguf/],
    ] as const)
      assert.match(await run('add', path, '--id', 'a/b'), problem, path)
    assert.match(await run('list', '--id', 'a/b'), /--id and --context are for models of your own/)
    const file = written('named.gguf', encoder)
    assert.match(await run('add', file, '--id', 'no slash'), /id/)
    assert.match(await run('add', file, '--id', 'a/b', '--context', 'many'), /--context must be a whole number/)
  })
})

describe('a model from a hub', () => {
  const first = encoder
  const hashOf = (content: Buffer): string => createHash('sha256').update(content).digest('hex')
  let folder: string
  let hub: FileServer
  const files: Record<string, ServedFile> = {}
  const listing = (
    ...listed: readonly { readonly path: string; readonly content: Buffer; readonly oid?: string }[]
  ) => {
    for (const { path, content } of listed) files[`/Acme/Tiny-GGUF/resolve/main/${path}`] = { content }
    const tree = listed.map(({ path, content, oid = hashOf(content) }) => ({
      type: 'file',
      path,
      size: content.length,
      lfs: { oid },
    }))
    files['/api/models/Acme/Tiny-GGUF/tree/main?recursive=true'] = { content: Buffer.from(JSON.stringify(tree)) }
  }

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'weir-hub-'))
    hub = await fileServer(files)
  })
  after(async () => {
    await hub.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const pull = (reference: string, ...more: readonly string[]) =>
    commandLine(['models', 'pull', reference, '--data', folder, '--json', ...more], {
      environment: { HF_ENDPOINT: hub.url },
    })
  const target = (name: string): string => join(folder, 'models', 'hub', 'Acme', 'Tiny-GGUF', name)

  it('is downloaded, continued where it stopped, checked by the hash that the hub lists, and added', async () => {
    listing(
      { path: 'tiny-Q4_K_M.gguf', content: first },
      { path: 'tiny-Q8_0.gguf', content: reranker },
      { path: 'mmproj-Q4_K_M.gguf', content: reranker },
      { path: '../../escape-Q4_K_M.gguf', content: reranker },
    )
    assert.equal((await pull('hf:Acme/Tiny-GGUF')).code, 0)
    assert.deepEqual(readFileSync(target('tiny-Q4_K_M.gguf')), first)
    writeFileSync(`${target('tiny-Q8_0.gguf')}.0.part`, reranker.subarray(0, 1000))
    const other = await pull('hf:Acme/Tiny-GGUF:q8_0', '--id', 'acme/ranker')
    assert.equal(other.code, 0, other.stderr)
    assert.equal(hub.requests.at(-1)?.range, 'bytes=1000-')
    assert.deepEqual(readFileSync(target('tiny-Q8_0.gguf')), reranker)
    const ids = loadConfig({ data: folder }, {})
      .catalog.read()
      .map(({ id }) => id)
    assert.deepEqual(ids.slice(-2), ['acme/tiny-gguf', 'acme/ranker'])
  })

  it('leaves nothing behind if the hash is another one', async () => {
    listing({ path: 'wrong-Q4_K_M.gguf', content: first, oid: hashOf(reranker) })
    const { code, stderr } = await pull('hf:Acme/Tiny-GGUF', '--id', 'acme/wrong')
    assert.notEqual(code, 0)
    assert.match(stderr, /wrong sha256/)
    assert.ok(!existsSync(target('wrong-Q4_K_M.gguf')) && !existsSync(`${target('wrong-Q4_K_M.gguf')}.0.part`))
  })

  it('may be split, and is chosen by its quantisation if there are several', async () => {
    const shards = ['00001', '00002'].map((number) => ({
      path: `Q2_K/big-Q2_K-${number}-of-00002.gguf`,
      content: first,
    }))
    listing(...shards, { path: 'other-Q6_K.gguf', content: first })
    const several = await pull('hf:Acme/Tiny-GGUF')
    assert.match(
      several.stderr,
      /Choose one model of Acme\/Tiny-GGUF with hf:Acme\/Tiny-GGUF:QUANT\. It has Q2_K\/big-Q2_K, other-Q6_K/,
    )
    await pull('hf:Acme/Tiny-GGUF:Q2_K', '--id', 'acme/big')
    for (const { path } of shards) assert.ok(existsSync(target(path)), path)
  })

  it('has to be named in full, and to be there', async () => {
    assert.match((await pull('hf:Acme')).stderr, /is not of the form hf:ORG\/REPO/)
    assert.match((await pull('hf:Acme/Absent')).stderr, /answered 404/)
  })
})
