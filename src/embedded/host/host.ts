import { readFile, rm } from 'node:fs/promises'
import { availableParallelism, totalmem } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { EngineError } from './runtime/engine-model.ts'
import type { EngineRuntime, RuntimeOptions } from './runtime/engine-runtime.ts'
import { hostServer } from './host-server.ts'
import { loadedModels } from './loaded-models.ts'
import { findModel, manifest } from '../manifest/manifest.ts'
import type { ManifestModel, RuntimeName } from '../manifest/types.ts'
import { modelPaths } from '../files/model-paths.ts'

/**
 * The engine host: one process for one runtime, speaking HTTP on a unix socket. A native crash ends this process and
 * nothing else.
 */
const { values } = parseArgs({
  options: {
    runtime: { type: 'string' },
    socket: { type: 'string' },
    models: { type: 'string' },
    manifest: { type: 'string' },
    threads: { type: 'string', default: String(availableParallelism()) },
    parallel: { type: 'string', default: '4' },
    'no-gpu': { type: 'boolean', default: false },
    'memory-budget': { type: 'string', default: String(Math.floor(totalmem() / 2)) },
  },
})

const runtimes: Record<RuntimeName, (options: RuntimeOptions) => Promise<EngineRuntime>> = {
  onnx: async (options) => (await import('./onnx/runtime.ts')).onnxRuntime(options),
  llama: async (options) => (await import('./llama/runtime.ts')).llamaRuntime(options),
}

const usage =
  'host.ts --runtime <onnx|llama> --socket <path> [--models <dir>] [--manifest <file>] [--threads N] [--parallel N] [--no-gpu]'
const { runtime: runtimeName, socket: socketPath } = values
if (!isRuntimeName(runtimeName) || !socketPath) throw new Error(`usage: ${usage}`)

/** The operator's own models, described as in manifest-types.ts, come after ours. */
const own = values.manifest ? (JSON.parse(await readFile(values.manifest, 'utf8')) as ManifestModel[]) : []
const known = [...manifest, ...own]
const paths = modelPaths(values.models ?? join(dirname(fileURLToPath(import.meta.url)), '../../data/models'))
const runtime = await runtimes[runtimeName]({
  threads: Number(values.threads),
  parallelRequests: Number(values.parallel),
  gpu: !values['no-gpu'],
})

const models = loadedModels({
  memoryBudgetBytes: Number(values['memory-budget']),
  log,
  find(slug) {
    const model = findModel(slug, known)
    if (model?.runtime !== runtimeName) {
      throw new EngineError(404, 'model_not_found', `The model '${slug}' is not known to this engine.`, 'model')
    }
    if (!paths.isPresent(model)) {
      throw new EngineError(503, 'model_not_configured', `The files of '${slug}' have not been fetched yet.`, 'model')
    }
    return {
      slug: model.catalog.id,
      expectedBytes: model.memoryBytes,
      load: () => runtime.load(model, (role) => paths.ofRole(model, role)),
    }
  },
})

const server = hostServer({
  models,
  log,
  async health() {
    return {
      status: 'ok',
      runtime: runtimeName,
      ...(await runtime.describe()),
      loaded: models.loadedSlugs(),
      model_bytes: models.memoryBytes(),
      active_requests: models.activeRequests(),
    }
  },
  async listModels() {
    const present = known.filter((model) => model.runtime === runtimeName && paths.isPresent(model))
    return present.map(describeModel)
  },
})

function describeModel({ catalog }: ManifestModel): object {
  const loaded = models.loadedSlugs().includes(catalog.id)
  return { id: catalog.id, object: 'model', owned_by: catalog.id.split('/', 1)[0], loaded }
}

function isRuntimeName(name: string | undefined): name is RuntimeName {
  return name !== undefined && Object.hasOwn(runtimes, name)
}

function log(message: string): void {
  process.stderr.write(`${message}\n`)
}

let stopping = false
async function stop(): Promise<void> {
  if (stopping) return
  stopping = true
  // Ends idle connections at once and lets requests in flight finish; the supervisor kills us if they take too long.
  server.close(
    () =>
      void models
        .close()
        .then(() => runtime.close())
        .finally(() => process.exit(0)),
  )
}
process.on('SIGTERM', () => void stop())
process.on('SIGINT', () => void stop())
// The channel exists only under a supervisor; its end means the parent is gone, however it went.
process.on('disconnect', () => process.exit(0))

await rm(socketPath, { force: true })
server.listen(socketPath, () => {
  log(`${runtimeName} engine ready`)
  process.send?.('ready')
})
