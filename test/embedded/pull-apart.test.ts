import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { pullApart } from '../../src/embedded/pull-process.ts'
import { eventually } from '../support/waiting.ts'

describe('a model that is fetched by a process of its own', () => {
  let directory: string
  /** A registry that takes requests and never answers. */
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
  const optionsFor = (signal = new AbortController().signal, registryUrl = url()) => ({
    environment: { ...process.env, npm_config_registry: registryUrl },
    onProgress: () => {},
    signal,
  })

  it('is there when it resolves, at once where nothing is missing', async () => {
    await pullApart(directory, 'weir/starter-image', optionsFor())
  })

  it('says why it could not be fetched', async () => {
    await assert.rejects(pullApart(directory, 'nobody/knows', optionsFor()), /Unknown model 'nobody\/knows'/)
    const nobody = optionsFor(undefined, 'http://127.0.0.1:1/')
    await assert.rejects(pullApart(directory, 'openai/whisper-tiny', nobody), /Could not fetch .*ECONNREFUSED/)
  })

  it('is left when the service stops', async () => {
    const stopped = new AbortController()
    const pulled = pullApart(directory, 'openai/whisper-tiny', optionsFor(stopped.signal))
    await eventually('it asks the registry', () => connections.size > 0)
    stopped.abort()
    await assert.rejects(pulled, { name: 'AbortError' })
    await eventually('its process is gone', () => connections.size === 0)
  })

  it('goes on while the service has only been asked to stop, as a terminal asks the whole group', async () => {
    const stopped = new AbortController()
    const pulled = pullApart(directory, 'openai/whisper-tiny', optionsFor(stopped.signal))
    await eventually('it asks the registry', () => connections.size > 0)
    const children = readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8')
      .trim()
      .split(' ')
      .map(Number)
    for (const child of children) for (const signal of ['SIGINT', 'SIGTERM']) process.kill(child, signal)
    await sleep(200)
    assert.equal(connections.size, 1)
    stopped.abort()
    await assert.rejects(pulled, { name: 'AbortError' })
    await eventually('its process is gone', () => connections.size === 0)
  })

  it('is left when the service is killed', async () => {
    const program = join(directory, 'service.ts')
    await writeFile(
      program,
      `import { setTimeout as sleep } from 'node:timers/promises'
import { pullApart } from ${JSON.stringify(new URL('../../src/embedded/pull-process.ts', import.meta.url).href)}
      await pullApart(${JSON.stringify(directory)}, 'openai/whisper-tiny', {
        environment: process.env, onProgress() {}, signal: new AbortController().signal,
      })`,
    )
    const service = fork(program, { env: optionsFor().environment })
    await eventually('it asks the registry', () => connections.size > 0)
    service.kill('SIGKILL')
    await eventually('nothing asks any more', () => connections.size === 0)
  })
})
