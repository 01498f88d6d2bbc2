import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { AdapterAnswer, EngineKind } from '../../src/catalog/model.ts'
import { adapterLoads, withFields } from '../../src/engines/adapter-loads.ts'
import type { EngineAddress } from '../../src/engines/address.ts'
import { adapterLoading } from '../../src/engines/dialects/adapters.ts'
import { turn } from '../support/hand-clock.ts'

/** How adapters are loaded into servers. The servers are scripted. */

const adapter = { name: 'lora-1', source: '/loras/one' }
const loadingOf = (kind: EngineKind) => adapterLoading(kind) ?? assert.fail(`${kind} takes no adapters`)

/** A server of a kind. The test answers its requests, in their order. */
function stage(kind: EngineKind = 'vllm') {
  const asked: unknown[] = []
  const answers: ((answer: AdapterAnswer) => void)[] = []
  const address = {
    query: (path: string, lines: string, { method, body, ...limits }: { method: string; body: Buffer | undefined }) => {
      asked.push({ path, lines, method, body: body?.toString(), ...limits })
      return new Promise((resolve) => answers.push(resolve))
    },
  } as unknown as EngineAddress
  const answer = async (body: string, status = 200): Promise<void> => {
    answers.shift()?.({ status, body })
    await turn()
  }
  return { asked, address, answer, loads: adapterLoads(loadingOf(kind), 'authorization: x\r\n') }
}

const limits = {
  lines: 'authorization: x\r\ncontent-type: application/json\r\n',
  timeoutMs: 600_000,
  maxBytes: 1_048_576,
}

describe('an adapter', () => {
  it('is loaded once for all calls, and again when the server may have lost it', async () => {
    const { asked, address, answer, loads } = stage()
    const [one, two] = [loads.load(address, adapter), loads.load(address, adapter)]
    await turn()
    await answer('Success')
    assert.deepEqual(await Promise.all([one, two, loads.load(address, adapter)]), [{}, {}, {}])
    const body = '{"lora_name":"lora-1","lora_path":"/loras/one"}'
    assert.deepEqual(asked, [{ path: '/load_lora_adapter', method: 'POST', body, ...limits }])
    loads.forget(address)
    void loads.load(address, adapter)
    await turn()
    assert.equal(asked.length, 2)
  })

  it('is loaded after the one before it, and again with the next call after a failure', async () => {
    const { asked, address, answer, loads } = stage()
    const failed = assert.rejects(loads.load(address, adapter), /^Error: status 500: no memory$/)
    const other = loads.load(address, { ...adapter, name: 'lora-2' })
    await turn()
    assert.equal(asked.length, 1)
    await answer('no memory', 500)
    await failed
    await answer('has already been loaded', 400)
    assert.deepEqual(await other, {})
    void loads.load(address, adapter)
    await turn()
    assert.equal(asked.length, 3)
  })

  it('is not loaded a third time because a load from before the server was gone fails late', async () => {
    const { asked, address, answer, loads } = stage()
    const early = assert.rejects(loads.load(address, adapter), /^Error: status 500: gone$/)
    await turn()
    loads.forget(address)
    const load = loads.load(address, adapter)
    await answer('gone', 500)
    await early
    const same = loads.load(address, adapter)
    await answer('Success')
    assert.equal(asked.length, 2)
    assert.deepEqual(await Promise.all([load, same]), [{}, {}])
  })

  it('is forgotten when a server has loaded a thousand others', async () => {
    const { asked, address, answer, loads } = stage()
    const load = async (name: string) => {
      const loading = loads.load(address, { ...adapter, name })
      await turn()
      await answer('Success')
      await loading
    }
    for (let number = 1; number <= 1000; number++) await load(`lora-${number}`)
    await load('lora-1')
    assert.equal(asked.length, 1000)
    await load('lora-1001')
    await load('lora-1')
    assert.equal(asked.length, 1002)
  })

  it('of llama.cpp is one of its command line, and all are switched off in the base model first', async () => {
    const { asked, address, answer, loads } = stage('llamacpp')
    const loading = loads.load(address, adapter)
    await turn()
    await answer('[{"id":0,"path":"/loras/two","scale":0},{"id":7,"path":"/loras/one","scale":1}]')
    await answer('{}')
    assert.deepEqual(await loading, { lora: [{ id: 7, scale: 1 }] })
    const path = '//lora-adapters'
    assert.deepEqual(asked, [
      { ...limits, path, method: 'GET', body: undefined, lines: 'authorization: x\r\n' },
      { ...limits, path, method: 'POST', body: '[{"id":0,"scale":0},{"id":7,"scale":0}]' },
    ])
    const refused = stage('llamacpp')
    const failed = assert.rejects(refused.loads.load(refused.address, adapter), /^Error: status 300: no$/)
    await turn()
    await refused.answer('[{"id":7,"path":"/loras/one","scale":1}]')
    await refused.answer('no', 300)
    await failed
  })

  it('is loaded according to the answer of its server', () => {
    const read = (kind: EngineKind, body: string, status = 200) => loadingOf(kind).read(adapter, { status, body })
    assert.deepEqual(read('vllm', 'Success', 299), { kind: 'loaded', fields: {} })
    assert.deepEqual(read('vllm', 'x'.repeat(501), 300), { kind: 'failed', reason: `status 300: ${'x'.repeat(500)}` })
    assert.deepEqual(read('sglang', 'already exists', 400), { kind: 'loaded', fields: { lora_path: 'lora-1' } })
    const loaded = { kind: 'loaded', fields: { lora: [{ id: 0, scale: 1 }] } }
    assert.deepEqual(read('llamacpp', '[{"id":0,"path":"/loras/one","scale":0}]'), loaded)
    assert.deepEqual(read('llamacpp', '[]', 404), { kind: 'failed', reason: 'status 404: []' })
    const reason = 'the server does not list it; start it with --lora /loras/one --lora-init-without-apply'
    for (const body of ['[{"id":0,"path":"/loras/two","scale":0}]', '{}', 'no JSON'])
      assert.deepEqual(read('llamacpp', body), { kind: 'failed', reason })
    assert.equal(adapterLoading('openai'), undefined)
  })

  it('is missing if the server refuses a call for lack of it', () => {
    for (const [kind, status, body, isMissing] of [
      ['vllm', 404, 'The model `lora-1` does not exist.', true],
      ['vllm', 400, 'The model `lora-1` does not exist.', false],
      ['vllm', 404, 'Not Found', false],
      ['sglang', 400, 'LoRA adapter lora-1 has never been loaded', true],
      ['sglang', 400, 'The LoRA adapter is not loaded', true],
      ['sglang', 404, 'LoRA adapter lora-1 has never been loaded', false],
      ['sglang', 400, 'too long', false],
      ['llamacpp', 404, 'does not exist', false],
    ] as const)
      assert.equal(
        adapterLoads(loadingOf(kind), '').isMissing({ status, body }),
        isMissing,
        `${kind} ${status} ${body}`,
      )
  })

  it('adds its fields to the body of a call', () => {
    const body = Buffer.from('{"model":"a"}')
    assert.equal(withFields(body, {}), body)
    assert.equal(withFields(body, { lora_path: 'lora-1' }).toString(), '{"lora_path":"lora-1","model":"a"}')
  })
})
