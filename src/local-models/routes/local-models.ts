import { Type } from 'typebox'
import { listSchema, nullable } from '../../server/common-schema.ts'
import { operatorRoute, type OperatorRoute } from '../../server/operator-route.ts'
import { jsonResponse } from '../../server/route.ts'
import { downloadStates } from '../local-models.ts'
import { fits, type LocalModelsView, type LocalModelView, type OperatorModels } from '../operator-models.ts'

/** The models that Weir can run on this machine: their files, their memory, and downloads. */

export interface LocalModelsParts {
  readonly localModels: OperatorModels
}

const example = 'huggingfacetb/smollm2-135m-instruct'

const modelSchema = Type.Object({
  model: Type.String({ example }),
  name: Type.String({ example: 'SmolLM2 135M Instruct (Q4_1)' }),
  categories: Type.Array(Type.String({ example: 'llm' })),
  license: Type.String({ example: 'Apache-2.0' }),
  catalog_models: Type.Array(Type.String({ example }), {
    description: 'The models of the catalog that run on it. Empty: callers cannot call it.',
  }),
  shipped: Type.Boolean({ description: 'true: it is a part of Weir, and cannot be removed.' }),
  state: Type.Enum(downloadStates, {
    description: 'failed: it is tried again every 30 seconds.',
    example: 'downloading',
  }),
  waiting: Type.Boolean({ description: 'true: its download begins when others have ended.' }),
  bytes: Type.Integer({ description: 'The size of its files.', example: 98_362_432 }),
  received_bytes: Type.Integer({ description: 'How much of them is on the disk.', example: 41_200_000 }),
  bytes_per_second: Type.Integer({
    description: 'Over the last five seconds; 0 if another process of the machine downloads it.',
    example: 2_400_000,
  }),
  problem: nullable(Type.String(), 'Why the last attempt failed.'),
  shared_with: Type.Array(Type.String(), {
    description: 'Models with the same files. They are downloaded, paused and removed together.',
    example: [],
  }),
  memory: Type.Object({
    needed_bytes: Type.Integer({ description: 'An estimate of what it takes while loaded.', example: 853_000_000 }),
    available_bytes: Type.Integer({
      description: 'What the loaded models leave of the memory for models of its runtime.',
      example: 4_000_000_000,
    }),
    fits: Type.Enum(fits, {
      description:
        'after_unloading: idle models are unloaded first, which happens by itself. no: it is larger than the memory for models; it runs alone, and may make the machine swap.',
      example: 'now',
    }),
    loaded: Type.Boolean({ description: 'true: it is in memory now.' }),
  }),
  requests: Type.Integer({ description: 'Requests of this process that run or wait.' }),
})

const machineSchema = Type.Object({
  host: Type.String({ description: 'The name of the machine that everything here is about.', example: 'gateway-1' }),
  directory: Type.String({ description: 'Where the files of models are.', example: '/var/lib/weir/models' }),
  disk: Type.Object({
    size_bytes: Type.Integer({ example: 100_000_000_000 }),
    free_bytes: Type.Integer({ example: 61_000_000_000 }),
    reserved_bytes: Type.Integer({
      description: 'What downloads leave free for the journal and the database.',
      example: 1_073_741_824,
    }),
  }),
  memory: Type.Object({
    machine_bytes: Type.Integer({ example: 16_000_000_000 }),
    budget_bytes: Type.Integer({
      description: 'How much the loaded models of one runtime may take. Each worker has runtimes of its own.',
      example: 8_000_000_000,
    }),
    loaded: Type.Array(
      Type.Object({
        model: Type.String({ example }),
        runtime: Type.Enum(['onnx', 'llama'], { example: 'llama' }),
        bytes: Type.Integer({ example: 853_000_000 }),
        requests: Type.Integer({ description: 'How many it works on.' }),
      }),
    ),
  }),
  runtime: Type.Object(
    {
      state: Type.Enum(downloadStates, { example: 'ready' }),
      bytes: Type.Integer({ example: 185_000_000 }),
      received_bytes: Type.Integer(),
    },
    { description: 'The packages that run models. A first download fetches them too.' },
  ),
})

const orderSchema = Type.Object({
  model: Type.String({ minLength: 1, maxLength: 200, description: 'A model, as listed.' }),
})

export function localModelRoutes({ localModels }: LocalModelsParts): readonly OperatorRoute[] {
  const find = async (slug: string): Promise<object> => modelView(await localModels.find(slug))
  const stateOf = async (slug: string): Promise<object> => {
    const { model, state, receivedBytes } = await localModels.find(slug)
    return { model: model.catalog.id, state, received_bytes: receivedBytes }
  }
  const orders = { body: orderSchema, example: { model: example } }
  return [
    operatorRoute({
      method: 'GET',
      path: '/admin/v1/local-models',
      id: 'listLocalModels',
      summary: 'List local models',
      description:
        'Every model that Weir can run itself, whether or not the catalog has it: its size, its download, and whether it fits the memory. About the machine that answers; replicas on other machines have files of their own.',
      response: jsonResponse(Type.Object({ ...listSchema(modelSchema).properties, machine: machineSchema })),
      errors: [],
      answer: async ({ exchange }) => exchange.sendJson(JSON.stringify(listView(await localModels.list()))),
    }),
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/local-models/download',
      id: 'pullModel',
      summary: 'Download a model',
      description:
        'Starts the download in the background, or resumes it: what is on the disk is kept, and the whole file is verified by its hash. The download continues after a restart. Refused with conflict if the disk has too little space. At most two downloads run at the same time.',
      ...orders,
      response: jsonResponse(modelSchema),
      errors: ['not_found', 'conflict'],
      state: async ({ body: { model } }) => stateOf(model),
      async answer({ exchange, body: { model } }) {
        await localModels.download(model)
        exchange.sendJson(JSON.stringify(await find(model)))
      },
    }),
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/local-models/pause',
      id: 'pauseModel',
      summary: 'Pause the download of a model',
      description: 'Keeps what has arrived. It stays paused over restarts, until you download the model.',
      ...orders,
      response: jsonResponse(modelSchema),
      errors: ['not_found', 'conflict'],
      state: async ({ body: { model } }) => stateOf(model),
      async answer({ exchange, body: { model } }) {
        await localModels.pause(model)
        exchange.sendJson(JSON.stringify(await find(model)))
      },
    }),
    operatorRoute({
      method: 'POST',
      path: '/admin/v1/local-models/remove',
      id: 'removeModel',
      summary: 'Remove a model',
      description:
        'Deletes the files of the model from the disk, with what an unfinished download has left, and frees its memory. It stays removed over restarts, until you download it. Refused with conflict while requests to it run or wait.',
      ...orders,
      response: jsonResponse(
        Type.Object({
          model: Type.String({ example }),
          freed_bytes: Type.Integer({ example: 98_362_432 }),
          also_gone: Type.Array(Type.String(), { description: 'Models that shared its files.', example: [] }),
        }),
      ),
      errors: ['not_found', 'conflict'],
      state: async ({ body: { model } }) => stateOf(model),
      async answer({ exchange, body: { model } }) {
        const { freedBytes, alsoGone } = await localModels.remove(model)
        const { id } = (await localModels.find(model)).model.catalog
        exchange.sendJson(JSON.stringify({ model: id, freed_bytes: freedBytes, also_gone: alsoGone }))
      },
    }),
  ]
}

function listView({ machine, models }: LocalModelsView): object {
  const { host, directory, disk, memory, runtime } = machine
  return {
    object: 'list',
    data: models.map(modelView),
    machine: {
      host,
      directory,
      disk: { size_bytes: disk.size, free_bytes: disk.free, reserved_bytes: Math.round(disk.reserved) },
      memory: {
        machine_bytes: memory.memoryBytes,
        budget_bytes: memory.budgetBytes,
        loaded: (['onnx', 'llama'] as const).flatMap((name) =>
          memory.loaded[name].map((it) => ({ ...it, runtime: name })),
        ),
      },
      runtime: { state: runtime.state, bytes: runtime.bytes, received_bytes: runtime.receivedBytes },
    },
  }
}

function modelView({ model, ...it }: LocalModelView): object {
  const { catalog, license, delivery, memoryBytes } = model
  return {
    model: catalog.id,
    name: catalog.name,
    categories: catalog.categories,
    license,
    catalog_models: it.catalogModels,
    shipped: delivery === 'box',
    state: it.state,
    waiting: it.isWaiting,
    bytes: it.bytes,
    received_bytes: it.receivedBytes,
    bytes_per_second: it.bytesPerSecond,
    problem: it.problem ?? null,
    shared_with: it.sharedWith,
    memory: {
      needed_bytes: memoryBytes,
      available_bytes: it.availableBytes,
      fits: it.fits,
      loaded: it.isLoaded,
    },
    requests: it.requests,
  }
}
