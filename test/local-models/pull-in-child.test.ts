import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { pullInChild } from '../../src/local-models/files/pull-in-child.ts'
import type { PullProgress } from '../../src/local-models/files/model-files.ts'
import { eventually } from '../support/waiting.ts'
import { fileServer } from './file-server.ts'

/** A busy machine may take long to start a process. */
const CHILD_STARTS_MS_MAX = 60_000

describe('fetching a model in a child process', () => {
  let directory: string
  /** A registry that accepts requests and never answers. */
  const connections = new Set<Socket>()
  const registry = createServer(() => {})
  registry.on('connection', (socket) => {
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
  })

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'weir-pull-'))
    await new Promise<void>((resolve) => registry.listen(0, '127.0.0.1', resolve))
  })
  after(async () => {
    registry.close()
    registry.closeAllConnections()
    await rm(directory, { recursive: true, force: true })
  })

  const url = (): string => `http://127.0.0.1:${(registry.address() as AddressInfo).port}/`
  const pull = (slug: string, signal = new AbortController().signal, registryUrl = url()): Promise<void> => {
    const environment = { ...process.env, npm_config_registry: registryUrl }
    return pullInChild({ directory, slug, environment }, { onProgress: () => {}, signal })
  }

  it('resolves at once if nothing is missing', async () => {
    await pull('weir/starter-image')
  })

  it('reports its progress until the model is there', async (t) => {
    const content = Buffer.from('weights')
    const headers = { 'x-linked-etag': createHash('sha256').update(content).digest('hex') }
    const folder = '/Xenova/bge-small-en-v1.5/resolve/main'
    const hub = await fileServer({
      [`${folder}/tokenizer.json`]: { content, headers },
      [`${folder}/onnx/model_quantized.onnx`]: { content, headers },
    })
    t.after(() => hub.close())
    const seen: PullProgress[] = []
    await pullInChild(
      { directory, slug: 'baai/bge-small-en-v1.5', environment: { ...process.env, HF_ENDPOINT: hub.url } },
      { onProgress: (progress) => seen.push(progress), signal: new AbortController().signal },
    )
    const { slug, receivedBytes, totalBytes } = seen.at(-1) ?? assert.fail('no progress')
    assert.deepEqual([slug, receivedBytes], ['baai/bge-small-en-v1.5', totalBytes])
  })

  it('reports why the model could not be fetched', async () => {
    await assert.rejects(pull('nobody/knows'), /Unknown model 'nobody\/knows'/)
    const nobody = 'http://127.0.0.1:1/'
    await assert.rejects(pull('openai/whisper-tiny', undefined, nobody), /Could not fetch .*ECONNREFUSED/)
  })

  it('ends when the service stops', async () => {
    const stopped = new AbortController()
    const pulled = pull('openai/whisper-tiny', stopped.signal)
    await eventually('the child asks the registry', () => connections.size > 0, CHILD_STARTS_MS_MAX)
    stopped.abort()
    await assert.rejects(pulled, { name: 'AbortError' })
    await eventually('the child is gone', () => connections.size === 0)
  })

  it('continues while the service has only been asked to stop, as a terminal signals the whole group', async () => {
    const stopped = new AbortController()
    const pulled = pull('openai/whisper-tiny', stopped.signal)
    await eventually('the child asks the registry', () => connections.size > 0, CHILD_STARTS_MS_MAX)
    const children = readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8')
      .trim()
      .split(' ')
      .map(Number)
    for (const child of children) for (const signal of ['SIGINT', 'SIGTERM']) process.kill(child, signal)
    await sleep(200)
    assert.equal(connections.size, 1)
    stopped.abort()
    await assert.rejects(pulled, { name: 'AbortError' })
    await eventually('the child is gone', () => connections.size === 0)
  })

  it('ends when the service is killed', async () => {
    const program = join(directory, 'service.ts')
    await writeFile(
      program,
      `import { pullInChild } from ${JSON.stringify(new URL('../../src/local-models/files/pull-in-child.ts', import.meta.url).href)}
      const order = { directory: ${JSON.stringify(directory)}, slug: 'openai/whisper-tiny', environment: process.env }
      await pullInChild(order, { onProgress() {}, signal: new AbortController().signal })`,
    )
    const service = fork(program, { env: { ...process.env, npm_config_registry: url() } })
    await eventually('the child asks the registry', () => connections.size > 0, CHILD_STARTS_MS_MAX)
    service.kill('SIGKILL')
    await eventually('the child is gone', () => connections.size === 0)
  })
})
