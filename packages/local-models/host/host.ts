import { parseArgs } from 'node:util'
import { modelPaths } from '../model-paths.ts'
import { manifest } from '../manifest/manifest.ts'
import type { RuntimeName } from '../contract.ts'
import { engineHost } from './engine-host.ts'
import type { EngineRuntime, RuntimeOptions } from './runtime/engine-runtime.ts'

/**
 * The program that runs models: one process for each runtime, answering HTTP on a unix socket. A crash in native code
 * ends this process and nothing else. The supervisor starts it and passes every option.
 */
const { values } = parseArgs({
  options: {
    runtime: { type: 'string', default: '' },
    socket: { type: 'string', default: '' },
    models: { type: 'string', default: '' },
    threads: { type: 'string', default: '' },
    parallel: { type: 'string', default: '' },
    'memory-budget': { type: 'string', default: '' },
    'no-gpu': { type: 'boolean', default: false },
  },
})
const missing = Object.entries(values).find(([, value]) => value === '')
if (missing) throw new Error(`the engine host needs --${missing[0]}`)

// Each host loads the native code of its own runtime only.
const runtimes: Readonly<Record<RuntimeName, (options: RuntimeOptions) => Promise<EngineRuntime>>> = {
  onnx: async (options) => (await import('./onnx/runtime.ts')).onnxRuntime(options),
  llama: async (options) => (await import('./llama/runtime.ts')).llamaRuntime(options),
}

const runtime = await runtimes[values.runtime as RuntimeName]({
  threads: Number(values.threads),
  parallelRequests: Number(values.parallel),
  gpu: !values['no-gpu'],
  log,
})
const host = engineHost({
  runtime,
  models: manifest,
  paths: modelPaths(values.models),
  memoryBudgetBytes: Number(values['memory-budget']),
  log,
})

function log(message: string): void {
  process.stderr.write(`${message}\n`)
}

let stopping = false
function stop(): void {
  if (stopping) return
  stopping = true
  // The supervisor kills this process if the requests in flight take too long.
  void host.close().finally(() => process.exit(0))
}
process.on('SIGTERM', stop)
process.on('SIGINT', stop)
// The channel closes when the supervisor's process ends, for whatever reason.
process.on('disconnect', () => process.exit(0))

await host.listen(values.socket)
log(`${runtime.name} engine ready`)
process.send?.('ready')
