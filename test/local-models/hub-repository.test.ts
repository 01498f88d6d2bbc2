import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { hubModel } from '../../src/local-models/files/hub-repository.ts'
import { fileServer, type FileServer, type ServedFile } from './file-server.ts'

interface Listed {
  readonly path: string
  readonly size: number
  readonly lfs?: { readonly oid: string }
}

const large = (path: string, size = 1): Listed => ({ path, size, lfs: { oid: `hash of ${path}` } })

describe('a model that a hub lists', () => {
  const served: Record<string, ServedFile> = {}
  let hub: FileServer
  before(async () => {
    hub = await fileServer(served)
  })
  after(() => hub.close())

  /** The model that the reference names, if the repository Acme/Tiny.1-GGUF has these files. */
  const chosen = (quant: string, ...files: readonly Listed[]) => {
    served['/api/models/Acme/Tiny.1-GGUF/tree/main?recursive=true'] = { content: Buffer.from(JSON.stringify(files)) }
    return hubModel(`hf:Acme/Tiny.1-GGUF${quant}`, { HF_ENDPOINT: `${hub.url}/` })
  }
  const pathsOf = async (quant: string, ...paths: readonly string[]) =>
    (await chosen(quant, ...paths.map((path) => large(path)))).files.map(({ path }) =>
      path.replace('hub/Acme/Tiny.1-GGUF/', ''),
    )

  it('has the names, sizes and hashes of its files, the shards in their order', async () => {
    const shards = ['Q8/b-00002-of-00002.gguf', 'Q8/b-00001-of-00002.gguf'] as const
    const { catalog, files, ...model } = await chosen('', large(shards[0], 5), large(shards[1], 7))
    assert.deepEqual(catalog, {
      id: 'acme/tiny.1-gguf',
      aliases: [],
      name: 'Tiny.1-GGUF',
      description: '',
      categories: [],
      context_length: 0,
      max_completion_tokens: 0,
      supported_parameters: [],
      pricing: {},
    })
    assert.deepEqual(model, { runtime: 'llama', loader: 'gguf-chat', license: '', delivery: 'pull', memoryBytes: 0 })
    const file = (role: string, path: string, bytes: number) => ({
      role,
      path: `hub/Acme/Tiny.1-GGUF/${path}`,
      bytes,
      sha256: `hash of ${path}`,
      sources: [{ kind: 'hub', repository: 'Acme/Tiny.1-GGUF', revision: 'main', path }],
    })
    assert.deepEqual(files, [file('model', shards[1], 7), file('model-2', shards[0], 5)])
  })

  it('is asked for with the token of the hub, if there is one', async () => {
    const path = '/api/models/Acme/Tiny.1-GGUF/tree/main?recursive=true'
    await chosen('', large('a.gguf'))
    assert.equal(hub.credentials.get(path), undefined)
    await hubModel('hf:Acme/Tiny.1-GGUF', { HF_ENDPOINT: hub.url, HF_TOKEN: 'hf_x' })
    assert.equal(hub.credentials.get(path), 'Bearer hf_x')
  })

  it('is the only one, or that of a usual quantisation, or the named one', async () => {
    const [q2, q4, q8] = ['a-Q2_K.gguf', 'a-Q4_K_M.gguf', 'a-Q8_0.gguf'] as const
    assert.deepEqual(await pathsOf('', q2), [q2])
    assert.deepEqual(await pathsOf('', q2, q8, q4), [q4])
    assert.deepEqual(await pathsOf('', q8, q2), [q8])
    assert.deepEqual(await pathsOf(':q2_k', q8, q2), [q2])
    const all = 'Acme/Tiny.1-GGUF with hf:Acme/Tiny.1-GGUF:QUANT. It has'
    for (const [quant, paths, names] of [
      ['', [q2, 'b-Q3_K.gguf'], 'a-Q2_K, b-Q3_K'],
      ['', [q4, 'b-Q4_K_M.gguf', q8], 'a-Q4_K_M, b-Q4_K_M, a-Q8_0'],
      [':Q8_0', [q2], 'a-Q2_K'],
      [':a', [q2], 'a-Q2_K'],
    ] as const)
      await assert.rejects(pathsOf(quant, ...paths), { message: `Choose one model of ${all} ${names}.` })
  })

  it('is a large file below the folder of its repository, and no projector for images', async () => {
    const others = ['readme.md', '../a.gguf', 'a/../b.gguf', '/a.gguf', './a.gguf', 'mmproj-a.gguf', 'a/b-mmproj.gguf']
    assert.deepEqual(await pathsOf('', 'c.gguf', ...others), ['c.gguf'])
    const none = { message: 'Acme/Tiny.1-GGUF has no .gguf files.' }
    await assert.rejects(pathsOf('', ...others), none)
    await assert.rejects(chosen('', { path: 'small.gguf', size: 1 }), none)
  })

  it('has to be named in full, in a repository that is there', async () => {
    const long = 'x'.repeat(96)
    for (const reference of [
      'hf:Acme',
      'Acme/Tiny',
      'hf:Acme/Tiny:',
      'hf:Acme/Tiny/more',
      `hf:${long}x/a`,
      'hf:a/b:c:d',
    ])
      await assert.rejects(hubModel(reference, {}), {
        message: `"${reference}" is not of the form hf:ORG/REPO or hf:ORG/REPO:QUANT.`,
      })
    const absent = hubModel(`hf:${long}/${long}:${'q'.repeat(64)}`, { HF_ENDPOINT: hub.url })
    await assert.rejects(absent, { message: `${new URL(hub.url).host} answered 404`, status: 404 })
    await assert.rejects(hubModel('hf:Acme/Tiny', { HF_ENDPOINT: 'http://127.0.0.1:9' }), {
      message: /^The hub http:\/\/127\.0\.0\.1:9 cannot be reached \(.+\)\. HF_ENDPOINT names another one\.$/,
    })
  })
})
