import { join } from 'node:path'
import { Client, type Dispatcher } from 'undici'
import { modelPaths } from '../model-paths.ts'
import { engineHost } from '../host/engine-host.ts'
import { llamaRuntime } from '../host/llama/runtime.ts'
import type { ManifestModel } from '../contract.ts'

export interface HostAnswer {
  readonly status: number
  readonly json: any // oxlint-disable-line typescript/no-explicit-any -- the shape is what the tests are about
}

export interface HostClient {
  get(path: string): Promise<HostAnswer>
  post(path: string, body: object): Promise<HostAnswer>
  close(): Promise<void>
}

/** The host of the llama runtime in this process, with models of the test's own, and a client on its socket. */
export async function llamaHost(options: {
  readonly models: readonly ManifestModel[]
  readonly modelsDirectory: string
  readonly socketDirectory: string
}): Promise<HostClient> {
  const log = (): void => {}
  const host = engineHost({
    runtime: await llamaRuntime({ threads: 2, parallelRequests: 2, gpu: false, log }),
    models: options.models,
    paths: modelPaths(options.modelsDirectory),
    memoryBudgetBytes: 2e9,
    log,
  })
  const socketPath = join(options.socketDirectory, 'host.sock')
  await host.listen(socketPath)
  const client = new Client('http://host', { socketPath })

  async function ask(request: Dispatcher.RequestOptions): Promise<HostAnswer> {
    const { statusCode, body } = await client.request(request)
    return { status: statusCode, json: await body.json() }
  }

  return {
    get: (path) => ask({ method: 'GET', path }),
    post: (path, body) => ask({ method: 'POST', path, body: JSON.stringify(body) }),
    async close() {
      await client.close()
      await host.close()
    },
  }
}
