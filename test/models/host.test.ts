import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { Client, type Dispatcher } from 'undici'
import { findModel } from '../../src/embedded/manifest/manifest.ts'
import { modelFiles } from '../../src/embedded/files/model-files.ts'
import { engineSupervisor, type EngineSupervisor } from '../../src/embedded/service/supervisor.ts'
import { modelsDirectory, type Answer } from './service.ts'

const tinyLlama = findModel('tinyllama')

/** What no caller of the service sees: models that it does not know, and mistakes that it never makes. */
describe('the engine host on its socket', () => {
  let supervisor: EngineSupervisor
  let client: Client
  let directory: string
  before(async () => {
    assert.ok(tinyLlama)
    await modelFiles(modelsDirectory, { environment: process.env }).pull(tinyLlama.catalog.id)
    directory = await mkdtemp(join(tmpdir(), 'weir-host-'))
    const own = {
      ...tinyLlama,
      loader: 'gguf-embedding',
      catalog: { ...tinyLlama.catalog, id: 'own/vectors', aliases: [] },
    }
    const manifestPath = join(directory, 'own.json')
    await writeFile(manifestPath, JSON.stringify([own]))
    supervisor = engineSupervisor({ socketDirectory: directory, modelsDirectory, manifestPath, log: () => {} })
    client = new Client('http://host', { socketPath: await supervisor.socket('llama') })
  })
  after(async () => {
    await client.close()
    await supervisor.stop()
    await rm(directory, { recursive: true })
  })

  async function ask(options: Dispatcher.RequestOptions): Promise<Pick<Answer, 'status' | 'json'>> {
    const { statusCode, body } = await client.request(options)
    return { status: statusCode, json: await body.json() }
  }
  const get = (path: string) => ask({ method: 'GET', path })
  const post = (path: string, body: object) => ask({ method: 'POST', path, body: JSON.stringify(body) })

  it("serves the operator's own models beside ours: here a GGUF file as an embedding model", async () => {
    const { json: list } = await get('/v1/models')
    assert.ok(list.data.some((model: { id: string }) => model.id === 'own/vectors'))
    const input = ['hello', 'good bye']
    const { status, json } = await post('/v1/embeddings', { model: 'own/vectors', input, dimensions: 256 })
    assert.equal(status, 200, JSON.stringify(json))
    const [first, second] = json.data.map((item: { embedding: number[] }) => item.embedding)
    assert.equal(first.length, 256)
    assert.notDeepEqual(first, second)
    assert.ok(Math.abs(Math.hypot(...first) - 1) < 1e-4)
    assert.ok(json.usage.prompt_tokens >= 3)
  })

  it('refuses what it does not know', async () => {
    assert.equal((await get('/v1/nothing')).json.error.code, 'unknown_url')
    const unknown = await post('/v1/embeddings', { model: 'no/such', input: 'x' })
    assert.equal(unknown.status, 404)
    assert.equal(unknown.json.error.code, 'model_not_found')
    const wrong = await post('/v1/completions', { model: 'own/vectors', prompt: 'x' })
    assert.equal(wrong.json.error.code, 'wrong_endpoint')
  })
})
