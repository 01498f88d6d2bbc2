import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { modelFiles } from '../../src/local-models/files/model-files.ts'
import { findModel, manifest } from '../../packages/local-models/manifest/manifest.ts'
import { defaultCatalog } from '../../src/local-models/default-catalog.ts'

describe('the manifest', () => {
  it('names each model once, and finds it by its alias', () => {
    const names = manifest.flatMap(({ catalog }) => [catalog.id, ...catalog.aliases])
    assert.equal(new Set(names).size, names.length)
    assert.equal(findModel('minilm')?.catalog.id, 'sentence-transformers/all-minilm-l6-v2')
  })

  it('pins every file that does not come from a hub alone', () => {
    for (const { files, catalog } of manifest) {
      for (const { sources, sha256, path } of files) {
        const hubOnly = sources.length > 0 && sources.every(({ kind }) => kind === 'hub')
        assert.ok(hubOnly || /^[0-9a-f]{64}$/.test(sha256 ?? ''), `${catalog.id}: ${path}`)
      }
    }
  })

  it('gives each reranker one schema', () => {
    for (const { catalog } of manifest) {
      assert.equal(catalog.categories.includes('reranker'), catalog.rerank_schema !== undefined)
    }
  })

  it('has a price for each model, and the default catalog states that it is an example', () => {
    const { models } = JSON.parse(defaultCatalog('/nowhere')) as {
      models: { id: string; description: string; pricing: object }[]
    }
    assert.deepEqual(
      models.map(({ id }) => id),
      manifest.map(({ catalog }) => catalog.id),
    )
    for (const { description, pricing } of models) {
      assert.match(description, /\(Prices are examples\.\)$/)
      assert.ok(Object.keys(pricing).length > 0)
    }
  })

  it('ships the starter models with Weir', () => {
    const files = modelFiles('/nowhere', { environment: {} })
    const shipped = manifest.filter(({ catalog }) => files.isPresent(catalog.id)).map(({ catalog }) => catalog.id)
    assert.deepEqual(shipped.toSorted(), ['weir/starter-image', 'weir/starter-vision'])
  })
})
