import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { IncomingMessage } from 'node:http'
import { it } from 'node:test'
import { Client } from 'undici'
import type { ManifestModel, ModelPaths } from '../contract.ts'
import { engineHost } from '../host/engine-host.ts'
import type { EngineRuntime } from '../host/runtime/engine-runtime.ts'
import { readRequestJson } from '../host/wire/body.ts'

it('a host runs the downloaded models of its own runtime only, and frees all of them at its end', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'weir-host-'))
  t.after(() => rm(directory, { recursive: true, force: true }))
  const modelOf = (id: string, runtime: string) =>
    ({ catalog: { id, aliases: [] }, runtime, memoryBytes: 1, files: [] }) as unknown as ManifestModel
  const freed: string[] = []
  const host = engineHost({
    runtime: {
      name: 'onnx',
      load: async ({ catalog: { id } }: ManifestModel) => ({
        memoryBytes: 1,
        embed: async () => ({ vectors: [new Float32Array([1])], promptTokens: 1 }),
        async close() {
          if (id === 'a/broken') throw new Error('it cannot be freed')
          await new Promise((resolve) => setImmediate(resolve))
          freed.push(id)
        },
      }),
      describe: async () => ({}),
      close: async () => void freed.push('runtime'),
    } as unknown as EngineRuntime,
    models: [
      modelOf('a/broken', 'onnx'),
      modelOf('a/b', 'onnx'),
      modelOf('a/gone', 'onnx'),
      modelOf('a/chat', 'llama'),
    ],
    paths: { isPresent: ({ catalog: { id } }: ManifestModel) => id !== 'a/gone' } as unknown as ModelPaths,
    memoryBudgetBytes: 100,
    log() {},
  })
  const socketPath = join(directory, 'host.sock')
  await host.listen(socketPath)
  const client = new Client('http://host', { socketPath })
  const answers: unknown[] = []
  for (const model of ['a/broken', 'a/b', 'a/gone', 'a/chat']) {
    const body = JSON.stringify({ model, input: 'x' })
    const answer = await client.request({ method: 'POST', path: '/v1/embeddings', body })
    const { error } = (await answer.body.json()) as { error?: { code: string } }
    answers.push([answer.statusCode, error?.code])
  }
  await client.close()
  await host.close()
  assert.deepEqual(answers, [
    [200, undefined],
    [200, undefined],
    [503, 'model_not_configured'],
    [404, 'model_not_found'],
  ])
  assert.deepEqual(freed, ['a/b', 'runtime'])
})

it('a host reads no body of more than 256 MiB', async () => {
  const pieces = [Buffer.from('{}'), { length: 256 * 1024 * 1024 - 1 }]
  const request = (async function* () {
    yield* pieces
  })() as unknown as IncomingMessage
  await assert.rejects(readRequestJson(request), { code: 'request_too_large' })
})
