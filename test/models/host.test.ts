import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { modelFiles } from '../../src/local-models/files/model-files.ts'
import { findModel } from '../../packages/local-models/manifest/manifest.ts'
import type { ManifestModel } from '../../packages/local-models/contract.ts'
import { llamaHost, type HostClient } from '../../packages/local-models/test/host-client.ts'
import { modelsDirectory } from './service.ts'

const chatModel = findModel('smollm2')

/** What a caller of the service never sees: a model that is not in the manifest, and mistakes the service never makes. */
describe('the engine host on its socket', () => {
  let host: HostClient
  let directory: string
  before(async () => {
    assert.ok(chatModel)
    await modelFiles(modelsDirectory, { environment: process.env }).pull(chatModel.catalog.id)
    directory = await mkdtemp(join(tmpdir(), 'weir-host-'))
    const vectors: ManifestModel = {
      ...chatModel,
      loader: 'gguf-embedding',
      catalog: { ...chatModel.catalog, id: 'test/vectors', aliases: [] },
    }
    host = await llamaHost({ models: [vectors], modelsDirectory, socketDirectory: directory })
  })
  after(async () => {
    await host.close()
    await rm(directory, { recursive: true })
  })

  it('returns embeddings from a GGUF file, cut to the requested dimensions', async () => {
    const input = ['hello', 'good bye']
    const { status, json } = await host.post('/v1/embeddings', { model: 'test/vectors', input, dimensions: 256 })
    assert.equal(status, 200, JSON.stringify(json))
    const [first, second] = json.data.map((item: { embedding: number[] }) => item.embedding)
    assert.equal(first.length, 256)
    assert.notDeepEqual(first, second)
    assert.ok(Math.abs(Math.hypot(...first) - 1) < 1e-4)
    assert.ok(json.usage.prompt_tokens >= 3)
  })

  it('reports what it runs and what it has loaded', async () => {
    const { status, json } = await host.get('/health')
    assert.equal(status, 200)
    assert.deepEqual([json.runtime, json.device], ['llama', 'cpu'])
    assert.partialDeepStrictEqual(json.loaded, [{ model: 'test/vectors', requests: 0 }])
  })

  it('refuses unknown models and paths', async () => {
    assert.equal((await host.get('/v1/nothing')).json.error.code, 'unknown_url')
    const unknown = await host.post('/v1/embeddings', { model: 'no/such', input: 'x' })
    assert.equal(unknown.status, 404)
    assert.equal(unknown.json.error.code, 'model_not_found')
    const wrong = await host.post('/v1/completions', { model: 'test/vectors', prompt: 'x' })
    assert.equal(wrong.json.error.code, 'wrong_endpoint')
  })
})
