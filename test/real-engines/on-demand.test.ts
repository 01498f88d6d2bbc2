import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { ggufFile } from '../../packages/local-models/test/gguf-file.ts'
import { freePort } from '../support/free-port.ts'
import { processesNaming } from '../support/processes.ts'
import { modelEntry, startWeir } from '../support/weir.ts'
import { engineFile, missing } from './engine-process.ts'
import { llamaScript, llamaWeights } from './llamacpp-process.ts'

const PYTHON = 'llamacpp/bin/python'

/** A server of llama.cpp that does not fit on the device beside another one. */
function modelOnDemand(id: string, port: number, more: readonly string[] = []): object {
  const command = [engineFile(PYTHON), llamaScript, '${PORT}', 'chat', engineFile(llamaWeights), ...more]
  const run = { command, port, device: 'cpu', memory: '600MiB', start_timeout_ms: 180_000 }
  const limits = { max_wait_ms: 300_000, max_concurrent_requests: 2 }
  return modelEntry([], { id, aliases: [], serverless: { engine: { kind: 'llamacpp', model: 'm', run }, limits } })
}

it('servers of llama.cpp start, swap and end with the service', { skip: missing(PYTHON, llamaWeights) }, async () => {
  const ids = ['llama/one', 'llama/two']
  const ports = [await freePort(), await freePort()] as const
  const models = [modelOnDemand('llama/one', ports[0]), modelOnDemand('llama/two', ports[1])]
  const weir = await startWeir({ devices: { cpu: '1GiB' }, models })
  const running = async (): Promise<readonly string[]> => {
    const answer = (await (await weir.admin('GET', '/admin/v1/engines')).json()) as {
      data: { lane: string; on_demand: { state: string } }[]
    }
    return answer.data.filter((it) => it.on_demand.state === 'ready').map(({ lane }) => lane)
  }
  try {
    // The second request of each waits behind the first, and the models take turns on the device.
    for (const id of [...ids, ...ids]) {
      const message = { role: 'user', content: 'Tell me about rivers.' }
      const answers = await Promise.all(
        [1, 2].map(() => weir.chat({ model: id, messages: [message], max_tokens: 20, temperature: 0 })),
      )
      for (const answer of answers) {
        assert.equal(answer.status, 200, await answer.clone().text())
        const { choices } = (await answer.json()) as { choices: { message: { content: string } }[] }
        assert.notEqual(choices[0]?.message.content, '')
      }
      assert.deepEqual(await running(), [id])
    }
    assert.equal((await weir.ledger()).length, 8)
  } finally {
    await weir.stop()
  }
  for (const port of ports) assert.deepEqual(processesNaming(`${llamaScript}\0${port}`), [])
})

it(
  'a server of llama.cpp that is killed starts again, and one that cannot start is refused with the reason',
  {
    skip: missing(PYTHON, llamaWeights),
  },
  async () => {
    const ports = [await freePort(), await freePort()] as const
    const absent = modelOnDemand('llama/absent', ports[1])
    const run = (absent as { serverless: { engine: { run: { command: string[] } } } }).serverless.engine.run
    run.command[4] = '/nowhere/absent.gguf'
    const weir = await startWeir({
      devices: { cpu: '1GiB' },
      models: [modelOnDemand('llama/killed', ports[0]), absent],
    })
    const say = (model: string): Promise<Response> =>
      weir.chat({ model, messages: [{ role: 'user', content: 'Hi.' }], max_tokens: 5 })
    try {
      assert.equal((await say('llama/killed')).status, 200)
      for (const pid of processesNaming(`${llamaScript}\0${ports[0]}`)) process.kill(pid, 'SIGKILL')
      assert.equal((await say('llama/killed')).status, 200)
      const refused = await say('llama/absent')
      assert.equal(refused.status, 503)
      assert.match(await refused.text(), /not running: (ended with|was ended)/)
      const { data } = (await (await weir.admin('GET', '/admin/v1/engines')).json()) as {
        data: { lane: string; on_demand: { last_lines: string[] } }[]
      }
      const lines = data.find(({ lane }) => lane === 'llama/absent')?.on_demand.last_lines.join('\n') ?? ''
      assert.match(lines, /absent\.gguf|failed to load/)
    } finally {
      await weir.stop()
    }
    for (const port of ports) assert.deepEqual(processesNaming(`${llamaScript}\0${port}`), [])
  },
)

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
    const base = modelOnDemand('llama/base', await freePort(), [`lora=${source}`])
    const { serverless: _place, ...entry } = base as { serverless: object }
    const adapter = { ...entry, id: 'llama/adapted', adapter_of: 'llama/base', adapter_source: source }
    const weir = await startWeir({ devices: { cpu: '1GiB' }, models: [base, adapter] })
    const answered = async (model: string): Promise<string> => {
      const messages = [{ role: 'user', content: 'Tell me about rivers.' }]
      const answer = await weir.chat({ model, messages, max_tokens: 20, temperature: 0 })
      assert.equal(answer.status, 200, await answer.clone().text())
      const { choices } = (await answer.json()) as { choices: { message: { content: string } }[] }
      return choices[0]!.message.content
    }
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
