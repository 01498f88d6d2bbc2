import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { parseCatalog } from '../src/catalog/file.ts'
import { loadConfig } from '../src/config.ts'
import { deploymentsOf, type Category } from '../src/catalog/model.ts'
import type { Dialect } from '../src/engines/dialects/dialect.ts'
import { dialects } from '../src/engines/dialects/index.ts'
import { defaultCatalog } from '../src/local-models/default-catalog.ts'
import { transcription, speechEngine, type SpeechEngine } from './support/speech-engine.ts'
import { scriptedEngine, type EngineCallSeen, type ScriptedEngine } from './support/scripted-engine.ts'
import { startWeir, type TestWeir } from './support/weir.ts'

/** What users copy: the configurations load, and the programs run as they stand against the service of examples/weir.yaml. */
const root = fileURLToPath(new URL('..', import.meta.url))
const folder = join(root, 'examples')

const textOf = (file: string): string => readFileSync(join(folder, file), 'utf8')
const namesIn = (subfolder: string): readonly string[] =>
  readdirSync(join(folder, subfolder))
    .filter((name) => /\.(sh|py|ts)$/.test(name))
    .toSorted()

const operationOf: Readonly<Record<Category, keyof Dialect>> = {
  llm: 'chat',
  vision: 'chat',
  embedding: 'embeddings',
  reranker: 'ranking',
  image: 'images',
  audio: 'speech',
}

describe('the configuration examples', () => {
  for (const file of ['weir.example.yaml', 'examples/weir.yaml']) {
    it(`${file} loads, and every engine in it can do what its model is for`, () => {
      const models = loadConfig({ config: join(root, file) }, {}).catalog.read()
      assert.ok(models.length > 0)
      for (const model of models) {
        for (const { engine, lane } of deploymentsOf(model)) {
          assert.ok(engine, lane)
          for (const category of model.categories) {
            assert.ok(dialects[engine.kind][operationOf[category]], `${engine.kind} has no ${category} for ${lane}`)
          }
        }
      }
    })
  }
})

/** The environment variables of .env.example, with every value it gives for them: those in comments too. */
function variablesOffered(): ReadonlyMap<string, readonly string[]> {
  const offered = new Map<string, string[]>()
  for (const [, name = '', value = ''] of textOf('.env.example').matchAll(/^(?:# )?(WEIR_[A-Z_]+)=(.*)$/gm)) {
    offered.set(name, [...(offered.get(name) ?? []), value])
  }
  return offered
}

const examples = ['curl', 'python', 'typescript'].flatMap((it) => namesIn(it).map((name) => join(it, name)))

describe('the variables of the examples', () => {
  it('are all in .env.example, with the defaults that the examples fall back to', () => {
    const offered = variablesOffered()
    const used = new Set<string>()
    for (const example of examples) {
      const text = textOf(example)
      for (const [name] of text.matchAll(/WEIR_[A-Z_]+/g)) used.add(name)
      const defaults = text.matchAll(/(WEIR_[A-Z_]+)(?:'\] \?\? '|", "|:-)([^'"}]+)/g)
      for (const [, name = '', value = ''] of defaults)
        assert.equal(offered.get(name)?.[0], value, `${example}: ${name}`)
    }
    assert.deepEqual(used, new Set(offered.keys()))
  })

  it('name models that are served: first by a service without a configuration, then by examples/weir.yaml', () => {
    const models = (...all: readonly { readonly id: string }[]): ReadonlySet<string> => new Set(all.map(({ id }) => id))
    const without = models(...parseCatalog(defaultCatalog('/nowhere'), 'the default catalog', () => undefined))
    const configured = models(...loadConfig({ config: join(folder, 'weir.yaml') }, {}).catalog.read())
    for (const [name, values] of variablesOffered()) {
      if (!name.endsWith('_MODEL')) continue
      assert.equal(values.length, 2, name)
      assert.ok(without.has(values[0] ?? ''), values[0])
      assert.ok(configured.has(values[1] ?? ''), values[1])
    }
  })
})

let engine: ScriptedEngine
let speech: SpeechEngine
let weir: TestWeir

before(async () => {
  engine = await scriptedEngine()
  engine.script = (call) => ({ '/embed': { handle: embed }, '/rerank': { handle: rank } })[call.path] ?? {}
  speech = await speechEngine()
  weir = await startWeir(withEngines(engine.url, speech.url))
})
after(async () => {
  await weir.stop()
  await speech.close()
  await engine.close()
})

/** examples/weir.yaml, in front of the engines of this test. */
function withEngines(url: string, speechUrl: string): object {
  type Entry = { serverless: { engine: { kind: string; urls: readonly string[] } } }
  const { models } = parse(textOf('weir.yaml')) as { models: readonly Entry[] }
  for (const { serverless } of models)
    serverless.engine.urls = [serverless.engine.kind === 'whispercpp' ? speechUrl : url]
  return { models }
}

/** text-embeddings-inference. */
function embed({ body }: EngineCallSeen, response: ServerResponse): void {
  const vectors = (body['inputs'] as readonly string[]).map((_, index) => [3, 4 * index])
  response.writeHead(200, { 'content-type': 'application/json', 'x-compute-tokens': '20' }).end(JSON.stringify(vectors))
}

function rank({ body }: EngineCallSeen, response: ServerResponse): void {
  const scores = (body['texts'] as readonly string[]).map((text, index) => ({
    index,
    score: text.includes('weir') ? 4 : -4,
  }))
  response.writeHead(200, { 'content-type': 'application/json', 'x-compute-tokens': '30' }).end(JSON.stringify(scores))
}

function run(command: string, args: readonly string[], changes: NodeJS.ProcessEnv = {}): Promise<string> {
  const models = [...variablesOffered()].flatMap(([name, [, value]]) => (value === undefined ? [] : [[name, value]]))
  const env = {
    PATH: process.env['PATH'],
    WEIR_URL: weir.service.url,
    WEIR_API_KEY: weir.key,
    ...Object.fromEntries(models),
    ...changes,
  }
  return new Promise((resolve, reject) => {
    execFile(command, [...args], { env, cwd: tmpdir() }, (error, stdout, stderr) => {
      if (error) reject(new Error(`${error.message}\n${stdout}\n${stderr}`))
      else resolve(stdout)
    })
  })
}

const recording = join(root, 'test', 'fixtures', 'audio', 'plain.wav')

/** What each example prints. */
const printed: Readonly<Record<string, (output: string) => void>> = {
  'curl/chat.sh'(output) {
    const { model, choices } = JSON.parse(output) as { model: string; choices: { message: { content: string } }[] }
    assert.deepEqual([model, choices[0]?.message.content], ['meta/llama-3.1-8b-instruct', 'Hello there!'])
  },
  'curl/stream.sh'(output) {
    const events = output.split('\n\n').filter(Boolean)
    assert.ok(events.some((event) => event.includes('" there"')))
    assert.match(events.at(-2) ?? '', /"total_tokens":13/)
    assert.equal(events.at(-1), 'data: [DONE]')
  },
  'curl/embeddings.sh'(output) {
    const { data } = JSON.parse(output) as { data: { embedding: number[] }[] }
    assert.deepEqual(
      data.map(({ embedding }) => embedding),
      [
        [3, 0],
        [3, 4],
      ],
    )
  },
  'curl/rerank.sh'(output) {
    const { results } = JSON.parse(output) as { results: { index: number; document: { text: string } }[] }
    assert.equal(results.length, 2)
    assert.deepEqual([results[0]?.index, results[0]?.document.text], [1, 'A weir is a low dam across a river.'])
  },
  'curl/transcription.sh'(output) {
    assert.equal((JSON.parse(output) as { text: string }).text.trim(), transcription.text.trim())
    assert.equal(speech.calls.at(-1)?.path, '/inference')
  },
  'typescript/chat.ts': (output) => assert.equal(output, 'Hello there!\n13 tokens, 0 ms in the queue\n'),
  'typescript/stream.ts': (output) => assert.equal(output, 'Hello there!\n13 tokens\n'),
  'typescript/embeddings.ts': (output) => assert.equal(output, '2 dimensions, similarity 0.600\n'),
}

describe('the curl and TypeScript examples', () => {
  for (const [example, check] of Object.entries(printed)) {
    it(`${example} works without changes`, async () => {
      const file = join(folder, example)
      const [command, args] = example.endsWith('.ts') ? [process.execPath, [file]] : ['sh', [file, recording]]
      check(await run(command, args))
    })
  }

  it('are all run', () => {
    assert.deepEqual(
      examples.filter((example) => !example.endsWith('.py')),
      Object.keys(printed).toSorted(),
    )
  })

  it('report what is wrong when the service refuses them, and exit with an error', async () => {
    await assert.rejects(run('sh', [join(folder, 'curl', 'chat.sh')], { WEIR_API_KEY: '' }), /Set it to a key/)
    await assert.rejects(run('sh', [join(folder, 'curl', 'chat.sh')], { WEIR_API_KEY: 'wrong' }), /invalid_api_key/)
    await assert.rejects(
      run(process.execPath, [join(folder, 'typescript', 'chat.ts')], { WEIR_API_KEY: 'wrong' }),
      /AuthenticationError/,
    )
  })
})

describe('the Python examples', () => {
  const isPythonHere = spawnSync('python3', ['--version']).error === undefined
  it('are valid Python', { skip: !isPythonHere && 'there is no python3 here' }, async (t) => {
    const cache = mkdtempSync(join(tmpdir(), 'weir-python-'))
    t.after(() => rmSync(cache, { recursive: true }))
    const files = namesIn('python').map((name) => join(folder, 'python', name))
    await run('python3', ['-m', 'py_compile', ...files], { PYTHONPYCACHEPREFIX: cache })
  })
})
