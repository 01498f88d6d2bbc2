import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { RuntimeName } from '../../packages/local-models/contract.ts'
import { modelFiles } from '../../src/local-models/files/model-files.ts'
import { processesNaming } from '../support/processes.ts'
import { eventually } from '../support/waiting.ts'
import { unconfiguredWeirProcess, type WeirProcess } from '../support/weir-process.ts'

/** Weights are fetched once and kept between runs. */
export const modelsDirectory =
  process.env['WEIR_MODEL_CACHE'] ?? join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'weir', 'models')

/** Weir as `npm start` runs it on a fresh machine, and a caller with a key. */
export interface ModelService {
  readonly weir: WeirProcess
  get(path: string): Promise<Answer>
  post(path: string, body: object): Promise<Answer>
  send(path: string, form: FormData): Promise<Answer>
  /** The events of a stream without `[DONE]`, or whatever the stream sends instead of it. */
  stream(path: string, body: object): AsyncGenerator<Chunk>
  /** The process that runs the models of a runtime. */
  hostPid(runtime: RuntimeName): number
  close(): Promise<void>
}

export interface Answer {
  status: number
  type: string
  text: string
  json: any // oxlint-disable-line typescript/no-explicit-any -- the shape is what the tests are about
}

export type Chunk = any // oxlint-disable-line typescript/no-explicit-any

export async function startService(...slugs: string[]): Promise<ModelService> {
  const files = modelFiles(modelsDirectory, { environment: process.env })
  for (const slug of slugs) await files.pull(slug)
  const weir = await unconfiguredWeirProcess(modelsDirectory)

  const call = (path: string, init: RequestInit = {}): Promise<Response> => {
    const headers = new Headers(init.headers)
    headers.set('authorization', `Bearer ${weir.key}`)
    return fetch(weir.base + path, { ...init, headers })
  }
  const json = (body: object): RequestInit => ({
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

  return {
    weir,
    get: async (path) => answerOf(await call(path)),
    post: async (path, body) => answerOf(await call(path, json(body))),
    send: async (path, form) => answerOf(await call(path, { method: 'POST', body: form })),
    async *stream(path, body) {
      const response = await call(path, json({ ...body, stream: true }))
      if (!response.body) throw new Error(`${path} answered nothing`)
      let text = ''
      for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
        text += chunk
        const events = text.split('\n\n')
        text = events.pop() ?? ''
        for (const event of events) {
          if (event.startsWith('data: {')) yield JSON.parse(event.slice('data: '.length))
        }
      }
    },
    hostPid(runtime) {
      // The command line of a host contains its socket, and the socket's name contains the pid of the service.
      const [pid] = processesNaming(`/${runtime}-${weir.pid}.sock`)
      if (pid === undefined) throw new Error(`no ${runtime} host is running`)
      return pid
    },
    async close() {
      weir.signal('SIGTERM')
      await weir.ended()
      await weir.remove()
    },
  }
}

/** Waits until the process stops computing. */
export async function becomesIdle(pid: number, ms: number): Promise<void> {
  let before = cpuSeconds(pid)
  let at = performance.now()
  await eventually(
    'the host is idle',
    () => {
      if (performance.now() - at < 500) return false
      const now = cpuSeconds(pid)
      const rests = now - before < 0.1
      before = now
      at = performance.now()
      return rests
    },
    ms,
  )
}

async function answerOf(response: Response): Promise<Answer> {
  const text = await response.text()
  const type = response.headers.get('content-type') ?? ''
  return { status: response.status, type, text, json: type === 'application/json' ? JSON.parse(text) : undefined }
}

function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // After the name, which may contain spaces. The kernel counts in hundredths of a second.
  const [user, system] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
  return (Number(user) + Number(system)) / 100
}
