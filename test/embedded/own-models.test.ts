import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { findModel } from '../../src/embedded/manifest.ts'
import { startEngineWith } from './engine.ts'
import type { TestEngine } from './engine.ts'

describe("the operator's own models", () => {
  let engine: TestEngine
  let directory: string
  before(async () => {
    const tinyLlama = findModel('tinyllama')
    assert.ok(tinyLlama)
    directory = await mkdtemp(join(tmpdir(), 'weir-own-'))
    const own = {
      ...tinyLlama,
      loader: 'gguf-embedding',
      catalog: { ...tinyLlama.catalog, id: 'own/vectors', aliases: [] },
    }
    await writeFile(join(directory, 'own.json'), JSON.stringify([own]))
    engine = await startEngineWith({ manifestPath: join(directory, 'own.json') }, 'llama', tinyLlama.catalog.id)
  })
  after(async () => {
    await engine.close()
    await rm(directory, { recursive: true })
  })

  it('are listed and served beside ours: here a GGUF file as an embedding model', async () => {
    const { json: list } = await engine.get('/v1/models')
    assert.ok(list.data.some((model: { id: string }) => model.id === 'own/vectors'))
    const { status, json, text } = await engine.post('/v1/embeddings', {
      model: 'own/vectors',
      input: ['hello', 'good bye'],
      dimensions: 256,
    })
    assert.equal(status, 200, text)
    const [first, second] = json.data.map((item: { embedding: number[] }) => item.embedding)
    assert.equal(first.length, 256)
    assert.notDeepEqual(first, second)
    assert.ok(Math.abs(Math.hypot(...first) - 1) < 1e-4)
    assert.ok(json.usage.prompt_tokens >= 3)
  })
})
