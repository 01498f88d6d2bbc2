import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { stringify } from 'yaml'
import { catalogDiff } from '../../src/catalog/catalog-diff.ts'
import { parseCatalog } from '../../src/catalog/file.ts'
import { deploymentsOf } from '../../src/catalog/model.ts'
import { modelEntry } from '../support/weir.ts'

const place = (kind: string): object => ({ engine: { kind, urls: ['http://127.0.0.1:9/v1'], model: 'base-name' } })
const base = (changes: object = {}): object =>
  modelEntry([], { id: 'acme/base', aliases: [], serverless: place('vllm'), ...changes })

function adapter(changes: object = {}): object {
  const { serverless: _place, ...entry } = modelEntry([]) as { serverless: object }
  const given = { id: 'acme/legal', aliases: [], adapter_of: 'acme/base', adapter_source: '/adapters/legal' }
  return { ...entry, ...given, ...changes }
}

const read = (...models: readonly object[]) => parseCatalog(stringify({ models }), 'catalog.yaml', () => undefined)

describe('an adapter in the catalog', () => {
  it('is in all places of its base, which may follow it in the file, and has none of its own', () => {
    const dedicated = [{ workspace: 'acme', ...place('sglang') }]
    const [legal, ofBase] = read(adapter(), base({ dedicated }))
    const { serverless, dedicated: reserved } = legal!
    assert.deepEqual([serverless?.lane, reserved[0]?.lane], ['acme/base', 'acme/base@acme'])
    assert.equal(serverless?.limits, ofBase!.serverless?.limits)
    assert.equal(serverless?.adapter?.source, '/adapters/legal')
    assert.deepEqual([serverless?.engine?.model, reserved[0]?.engine?.model], [serverless?.adapter?.name, 'base-name'])
    assert.deepEqual([deploymentsOf(legal!), deploymentsOf(ofBase!).length], [[], 2])
  })

  it('has another name in its engine if its source is another', () => {
    const nameOf = (source: string): string | undefined =>
      read(base(), adapter({ adapter_source: source }))[1]?.serverless?.adapter?.name
    assert.equal(nameOf('/one'), nameOf('/one'))
    assert.notEqual(nameOf('/one'), nameOf('/two'))
    const [added] = catalogDiff(read(base()), read(base(), adapter()))
    assert.equal(added?.fields.find(({ field }) => field === 'adapter_of')?.after, 'acme/base')
    const [change] = catalogDiff(read(base(), adapter()), read(base(), adapter({ adapter_source: '/two' })))
    assert.deepEqual(
      change?.fields.find(({ field }) => field === 'adapter_source'),
      { field: 'adapter_source', before: '/adapters/legal', after: '/two' },
    )
  })

  it('is refused with what to do', () => {
    const refuses = (message: RegExp, ...models: readonly object[]): void =>
      assert.throws(() => read(...models), message)
    refuses(/adapter_of: "acme\/base" is not the id of a model/, adapter())
    refuses(
      /adapter_of: acme\/legal is an adapter itself/,
      base(),
      adapter(),
      adapter({ id: 'a/b', adapter_of: 'acme/legal' }),
    )
    refuses(
      /adapter_of: acme\/base runs on ollama; only vllm, sglang, llamacpp/,
      base({ serverless: place('ollama') }),
      adapter(),
    )
    refuses(/adapter_source: is required with adapter_of/, base(), adapter({ adapter_source: null }))
    refuses(/adapter_of: is required with adapter_source/, base(), adapter({ adapter_of: null }))
    refuses(/serverless: is not allowed with adapter_of/, base(), adapter({ serverless: place('vllm') }))
    refuses(/categories: must be llm or vision/, base(), adapter({ categories: ['embedding'] }))
    refuses(/context_length: must be at most that of acme\/base \(8192\)/, base(), adapter({ context_length: 8193 }))
  })
})
