import { mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, homedir, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client } from 'undici'
import type { Dispatcher, FormData } from 'undici'
import { modelFiles } from '../../src/embedded/model-files.ts'
import type { RuntimeName } from '../../src/embedded/manifest-types.ts'
import { engineSupervisor } from '../../src/embedded/supervisor.ts'
import type { EngineSupervisor, SupervisorOptions } from '../../src/embedded/supervisor.ts'

/** Weights are fetched once and kept between runs. */
export const modelsDirectory =
  process.env['WEIR_MODEL_CACHE'] ?? join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'weir', 'models')

export const boxDirectory = join(dirname(fileURLToPath(import.meta.url)), '../../models')

export interface TestEngine {
  supervisor: EngineSupervisor
  post(path: string, body: object): Promise<Answer>
  send(path: string, form: FormData): Promise<Answer>
  get(path: string): Promise<Answer>
  /** The events of a stream, without `[DONE]`; throws when the stream breaks. */
  stream(path: string, body: object): AsyncGenerator<Chunk>
  close(): Promise<void>
}

export interface Answer {
  status: number
  type: string
  text: string
  json: any // oxlint-disable-line typescript/no-explicit-any -- the shape is what the tests are about
}

export type Chunk = any // oxlint-disable-line typescript/no-explicit-any

/** A supervised host, as the gateway runs it, and a client on its socket. */
export function startEngine(runtime: RuntimeName, ...slugs: string[]): Promise<TestEngine> {
  return startEngineWith({}, runtime, ...slugs)
}

export async function startEngineWith(
  options: Partial<SupervisorOptions>,
  runtime: RuntimeName,
  ...slugs: string[]
): Promise<TestEngine> {
  const files = modelFiles(modelsDirectory, { environment: process.env })
  for (const slug of slugs) await files.pull(slug)
  const socketDirectory = await mkdtemp(join(tmpdir(), 'weir-engine-'))
  const supervisor = engineSupervisor({
    socketDirectory,
    modelsDirectory,
    // Two test files run at a time; llama.cpp's threads suffer badly when they have to share a core.
    threads: Math.max(1, Math.floor(availableParallelism() / 2)),
    ...options,
    log: ({ message }) => process.env['WEIR_TEST_LOG'] && console.error(message),
  })

  async function client(): Promise<Client> {
    const socketPath = await supervisor.socket(runtime)
    return new Client('http://engine', { socketPath, headersTimeout: 0, bodyTimeout: 0 })
  }

  async function answer(options: Dispatcher.RequestOptions): Promise<Answer> {
    const connection = await client()
    try {
      const { statusCode, headers, body } = await connection.request(options)
      const text = await body.text()
      const type = String(headers['content-type'])
      return { status: statusCode, type, text, json: type === 'application/json' ? JSON.parse(text) : undefined }
    } finally {
      await connection.destroy()
    }
  }

  return {
    supervisor,
    get: (path) => answer({ method: 'GET', path }),
    post: (path, body) => answer({ method: 'POST', path, body: JSON.stringify(body) }),
    send: (path, form) => answer({ method: 'POST', path, body: form }),
    async *stream(path, body) {
      const connection = await client()
      try {
        const response = await connection.request({
          method: 'POST',
          path,
          body: JSON.stringify({ ...body, stream: true }),
        })
        let text = ''
        let done = false
        for await (const chunk of response.body as AsyncIterable<Buffer>) {
          text += chunk.toString('utf8')
          const events = text.split('\n\n')
          text = events.pop() ?? ''
          for (const event of events) {
            if (event === 'data: [DONE]') done = true
            else yield JSON.parse(event.slice('data: '.length))
          }
        }
        if (!done) throw new Error('the stream ended without [DONE]')
      } finally {
        await connection.destroy()
      }
    },
    async close() {
      await supervisor.stop()
      await rm(socketDirectory, { recursive: true, force: true })
    },
  }
}
