import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { ggufFile } from '../../packages/local-models/test/gguf-file.ts'
import { runningIn } from '../../src/engines/on-demand/process-group.ts'
import type { ProcessRecord } from '../../src/engines/on-demand/process-record.ts'
import { freePort } from '../support/free-port.ts'
import { stateOf } from '../support/on-demand-stage.ts'
import { eventually } from '../support/waiting.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'
import { BUSY_MACHINE_MS, weirProcess } from '../support/weir-process.ts'
import { engineFile, missing } from './engine-process.ts'
import { llamaScript, llamaWeights } from './llamacpp-process.ts'
import { ollamaEnvironment, ollamaModel, ollamaProgram, startOllama } from './ollama-process.ts'

/** Real servers that Weir starts, swaps and ends. */

interface Server {
  readonly kind: string
  readonly needs: readonly string[]
  readonly model: string
  /** What the catalog says about its process. */
  run(): object
  /** One that ends when it starts, and what it prints then. */
  readonly broken: { readonly run: () => object; readonly prints: RegExp }
}

const PYTHON = 'llamacpp/bin/python'
const llamacppRun = (weights: string, more: readonly string[] = []): object => ({
  command: [engineFile(PYTHON), llamaScript, '${PORT}', 'chat', weights, ...more],
})
const pythonRun = (weights: string): object => ({
  command: [
    engineFile('llama-cpp-python/bin/python'),
    ...'-m llama_cpp.server --host 127.0.0.1 --n_ctx 1024 --n_threads 1 --n_threads_batch 1'.split(' '),
    '--port',
    '${PORT}',
    '--model',
    weights,
  ],
  ready: '/v1/models',
})
const ollamaFolder = mkdtempSync(join(tmpdir(), 'weir-ollama-'))
const ollamaRun = (folder: string): object => ({
  command: [engineFile(ollamaProgram), 'serve'],
  env: ollamaEnvironment(folder, '${PORT}'),
})

const servers: Readonly<Record<string, Server>> = {
  'llama.cpp': {
    kind: 'llamacpp',
    needs: [PYTHON, llamaWeights],
    model: 'm',
    run: () => llamacppRun(engineFile(llamaWeights)),
    broken: { run: () => llamacppRun('/nowhere/absent.gguf'), prints: /absent\.gguf|failed to load/ },
  },
  'llama-cpp-python': {
    kind: 'llamacpp_python',
    needs: ['llama-cpp-python/bin/python', llamaWeights],
    model: 'm',
    run: () => pythonRun(engineFile(llamaWeights)),
    broken: { run: () => pythonRun('/nowhere/absent.gguf'), prints: /absent\.gguf/ },
  },
  Ollama: {
    kind: 'ollama',
    needs: [ollamaProgram, llamaWeights],
    model: ollamaModel,
    run: () => ollamaRun(ollamaFolder),
    broken: { run: () => ollamaRun('/proc/absent'), prints: /\/proc\/absent/ },
  },
}

/** A model that does not fit on the device beside another one. */
async function modelOnDemand(id: string, server: Server, own: object = server.run(), port?: number): Promise<object> {
  const run = { port: port ?? (await freePort()), device: 'cpu', memory: '600MiB', start_timeout_ms: 180_000, ...own }
  const limits = { max_wait_ms: 300_000, max_concurrent_requests: 2 }
  const engine = { kind: server.kind, model: server.model, run }
  return modelEntry([], { id, aliases: [], serverless: { engine, limits } })
}

const devices = { cpu: '1GiB' }

const say = (weir: Pick<TestWeir, 'chat'>, model: string, maxTokens = 5): Promise<Response> =>
  weir.chat({
    model,
    messages: [{ role: 'user', content: 'Tell me about rivers.' }],
    max_tokens: maxTokens,
    temperature: 0,
  })

async function textOf(answer: Response): Promise<string> {
  assert.equal(answer.status, 200, await answer.clone().text())
  const { choices } = (await answer.json()) as { choices: { message: { content: string } }[] }
  return choices[0]!.message.content
}

/** The engines that run for a service, by their records. */
function recordsIn(dataDir: string): readonly ProcessRecord[] {
  const folder = join(dataDir, 'engines')
  const files = readdirSync(folder).filter((file) => file.endsWith('.process.json'))
  return files.map((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')) as ProcessRecord)
}

after(() => rmSync(ollamaFolder, { recursive: true, force: true }))

for (const [title, server] of Object.entries(servers)) {
  describe(`${title} on demand`, { skip: missing(...server.needs) }, () => {
    if (server.kind === 'ollama') before(async () => (await startOllama(ollamaFolder)).stop())

    it('starts with its first request, takes turns with another on its device, and ends with the service', async () => {
      const ids = ['real/one', 'real/two']
      const models = await Promise.all(ids.map((id) => modelOnDemand(id, server)))
      const weir = await startWeir({ devices, models })
      const groups = new Set<number>()
      try {
        for (const id of [...ids, ...ids]) {
          // The second request waits behind the first.
          for (const answer of await Promise.all([say(weir, id), say(weir, id)]))
            assert.notEqual(await textOf(answer), '')
          const other = ids.find((it) => it !== id)!
          assert.deepEqual([await stateOf(weir, id), await stateOf(weir, other)], ['ready', 'stopped'])
          for (const { guardian } of recordsIn(weir.dataDir)) groups.add(guardian.pid)
        }
        assert.equal((await weir.ledger()).length, 8)
        assert.equal(groups.size, 4, 'each turn was a start')
      } finally {
        await weir.stop()
      }
      for (const group of groups) assert.deepEqual(await runningIn(group), [])
    })

    it('that is killed under load serves what it had and what waited when it has started again', async () => {
      const weir = await startWeir({ devices, models: [await modelOnDemand('real/killed', server)] })
      try {
        await textOf(await say(weir, 'real/killed'))
        const asked = Array.from({ length: 6 }, () => say(weir, 'real/killed', 20))
        await eventually('it has requests', async () => {
          const { data } = (await (await weir.call('/queue/status')).json()) as {
            data: { in_flight_requests: number }[]
          }
          return data[0]!.in_flight_requests > 0
        })
        process.kill(recordsIn(weir.dataDir)[0]!.engine.pid, 'SIGKILL')
        for (const answer of await Promise.all(asked)) await textOf(answer)
        assert.equal((await weir.ledger()).length, 7)
      } finally {
        await weir.stop()
      }
    })

    it('leaves nothing behind when the service is killed, and serves the next one', async () => {
      const config = { server: { port: 0, admin_port: 0 }, devices, models: [await modelOnDemand('real/one', server)] }
      const weir = await weirProcess(config)
      try {
        await textOf(await say(weir, 'real/one'))
        const [record] = recordsIn(weir.dataDir)
        weir.signal('SIGKILL')
        await weir.ended()
        const isGone = async (): Promise<boolean> => (await runningIn(record!.guardian.pid)).length === 0
        await eventually('all its processes have ended', isGone, BUSY_MACHINE_MS)
        await weir.start()
        await textOf(await say(weir, 'real/one'))
      } finally {
        await weir.remove()
      }
    })

    it('is refused with the reason if its port is taken, or if it ends when it starts', async () => {
      const other = createServer().listen(0, '127.0.0.1')
      await once(other, 'listening')
      const { port } = other.address() as { port: number }
      const models = [
        await modelOnDemand('real/taken', server, server.run(), port),
        await modelOnDemand('real/broken', server, server.broken.run()),
      ]
      const weir = await startWeir({ devices, models })
      try {
        const taken = await say(weir, 'real/taken')
        assert.equal(taken.status, 503)
        assert.match(await taken.text(), /is in use by another process/)
        const broken = await say(weir, 'real/broken')
        assert.equal(broken.status, 503)
        assert.match(await broken.text(), /not running: (ended with|was ended)/)
        const { data } = (await (await weir.admin('GET', '/admin/v1/engines')).json()) as {
          data: { lane: string; on_demand: { last_lines: string[] } }[]
        }
        const lines = data.find(({ lane }) => lane === 'real/broken')?.on_demand.last_lines.join('\n') ?? ''
        assert.match(lines, server.broken.prints)
      } finally {
        other.close()
        await weir.stop()
      }
    })
  })
}

/** A LoRA that changes what SmolLM2-135M says, beyond recognition. */
function adapterFile(): Buffer {
  const rank = 4
  const [inner, hidden] = [1536, 576]
  const wave = (length: number): Float32Array => Float32Array.from({ length }, (_, index) => Math.sin(index))
  return ggufFile(
    {
      'general.architecture': 'llama',
      'general.type': 'adapter',
      'adapter.type': 'lora',
      'adapter.lora.alpha': { float: rank },
    },
    [
      { name: 'blk.2.ffn_down.weight.lora_a', dimensions: [inner, rank], data: wave(inner * rank) },
      { name: 'blk.2.ffn_down.weight.lora_b', dimensions: [rank, hidden], data: wave(rank * hidden) },
    ],
  )
}

it(
  'an adapter of llama.cpp answers unlike its base, on the same server',
  { skip: missing(PYTHON, llamaWeights) },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-adapter-'))
    const source = join(folder, 'adapter.gguf')
    writeFileSync(source, adapterFile())
    const run = llamacppRun(engineFile(llamaWeights), [`lora=${source}`])
    const base = await modelOnDemand('llama/base', servers['llama.cpp']!, run)
    const { serverless: _place, ...entry } = base as { serverless: object }
    const adapter = { ...entry, id: 'llama/adapted', adapter_of: 'llama/base', adapter_source: source }
    const weir = await startWeir({ devices, models: [base, adapter] })
    const answered = async (model: string): Promise<string> => textOf(await say(weir, model, 20))
    try {
      const adapted = await answered('llama/adapted')
      const plain = await answered('llama/base')
      assert.notEqual(adapted, plain)
      assert.deepEqual([await answered('llama/adapted'), await answered('llama/base')], [adapted, plain])
    } finally {
      await weir.stop()
      rmSync(folder, { recursive: true })
    }
  },
)
