import assert from 'node:assert/strict'
import { writeFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { EngineDescription, Model } from '../../src/catalog/model.ts'
import { engineProblem, memoryProblem, modelsToFetch, requireKnown } from '../../src/local-models/catalog-models.ts'
import { manifest } from '../../src/local-models/installed.ts'
import { engineLimits, thisMachine } from '../../src/local-models/machine-limits.ts'

/** Which models of a catalog can run here, and which are downloaded. */

const embedded = (model: string) => ({ kind: 'embedded', model }) as EngineDescription
const modelOn = (engine: object): Model =>
  ({ id: 'a/x', serverless: { lane: 'a/x', engine }, dedicated: [] }) as unknown as Model

describe('a model of a catalog that the service runs itself', () => {
  it('fits what models may use of the memory, to the last byte', () => {
    const { memoryBudgetBytes } = engineLimits(thisMachine())
    assert.equal(memoryProblem(memoryBudgetBytes), undefined)
    assert.match(memoryProblem(memoryBudgetBytes + 1) ?? '', /the model needs .* half of the/)
  })

  it('is known, and its own file exists; files of others are downloaded', (t) => {
    assert.equal(engineProblem(undefined), undefined)
    assert.equal(engineProblem({ kind: 'vllm' } as EngineDescription), undefined)
    assert.match(engineProblem(embedded('no/such')) ?? '', /no\/such/)
    for (const { catalog } of manifest) assert.equal(engineProblem(embedded(catalog.id)), undefined)
    const folder = mkdtempSync(join(tmpdir(), 'weir-own-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'own.gguf')
    assert.equal(engineProblem(embedded(`gguf-embedding@512:${file}`)), `there is no file ${file}`)
    const shards = `gguf-chat@512:${join(folder, 'split-00001-of-00003.gguf')}`
    for (const shard of ['00001', '00002', '00003']) {
      const path = join(folder, `split-${shard}-of-00003.gguf`)
      assert.equal(engineProblem(embedded(shards)), `there is no file ${path}`)
      writeFileSync(path, '')
    }
    assert.equal(engineProblem(embedded(shards)), undefined)
    writeFileSync(file, '')
    assert.doesNotMatch(engineProblem(embedded(`gguf-embedding@512:${file}`)) ?? '', /there is no file/)
  })

  it('is refused with the catalog, under the name of its lane, if it cannot run', () => {
    assert.throws(() => requireKnown([modelOn(embedded('no/such'))]), /a\/x: .*no\/such/)
    requireKnown([modelOn({ kind: 'vllm' }), modelOn(embedded(manifest[0]!.catalog.id))])
  })

  it('is downloaded at the start, but of the default catalog only if it is small', () => {
    const models = manifest.map(({ catalog }) => modelOn(embedded(catalog.id)))
    const all = manifest.map(({ catalog }) => catalog.id)
    const small = manifest.filter(({ delivery }) => delivery === 'default').map(({ catalog }) => catalog.id)
    assert.ok(small.length > 0 && small.length < all.length)
    assert.deepEqual(modelsToFetch([modelOn({ kind: 'vllm' }), ...models], false), all)
    assert.deepEqual(modelsToFetch(models, true), small)
  })
})
