import { listPrices } from '../list-prices.ts'
import { bytesText } from '../../shared/bytes-text.ts'
import { endpointsOf, modesOf, type EngineDescription, type Model } from '../model.ts'
import { bothStates, modelFiles, type FilesState, type ModelFiles } from '../../local-models/files/model-files.ts'
import { runtimeFiles, type RuntimeFiles } from '../../local-models/files/runtime-files.ts'
import { isDumbTerminal } from '../../config.ts'
import { removeModelOf } from '../../operate/running-service.ts'
import { hasLedger } from '../../store/database-choice.ts'
import { addFile, forgetModel, pullFromHub } from './own-models.ts'
import { findModel, modelBytes, whyUnknown } from '../../local-models/installed.ts'
import type { ModelPrices } from '../../billing/rating/price-kinds.ts'
import {
  CommandFailed,
  configOf,
  parseFlags,
  UsageError,
  withStore,
  type Command,
  type Flags,
} from '../../cli/command.ts'
import { progressBar, type Progress } from '../../cli/terminal/progress.ts'
import { openScreen } from '../../cli/terminal/screen.ts'
import { renderTable, type Column } from '../../cli/terminal/table.ts'
import type { View } from '../../cli/terminal/view.ts'

export const models: Command = {
  summary: 'list models; download, add or remove those that Weir runs itself',
  help: `weir models list
weir models pull SLUG
weir models pull hf:ORG/REPO[:QUANT] [--id ORG/NAME] [--context N]
weir models add FILE.gguf --id ORG/NAME [--context N]
weir models pause SLUG
weir models remove SLUG

"list" shows the models of the catalog, with list prices in AUD excluding GST,
and whether the models that Weir runs itself are downloaded. "pull" downloads
and verifies a model, and what models need to run if it is not there yet. It
resumes after an interruption, and a running service uses the model as soon as
it is complete. "pause" stops its download, here or in a running service, and
keeps what has arrived until "pull" continues. "remove" deletes its files; a
running service refuses that while it works on requests to the model. What is
paused or removed is not downloaded by the next start.

"add" runs a GGUF file of your own: a chat model, embeddings or a reranker. It
reads the kind, the context and the template from the file, and refuses what the
memory cannot hold. Of a split model, give the first part. "pull hf:" downloads
such a file from a hub (HF_ENDPOINT, HF_TOKEN), checks its hash, and adds it.
Without a weir.yaml the model is in the catalog then; otherwise the lines for it
are printed. "remove" takes such a model out of the catalog; its file stays.

  --id ORG/NAME    the name of the model in the catalog
  --context N      how many tokens a request may have; less takes less memory`,
  async run(args) {
    const flags = parseFlags(args, { id: 'string', context: 'string' }, 2)
    const [action, slug] = flags.positionals
    const config = configOf(flags)
    const files = modelFiles(config.modelsDir, { environment: config.environment })
    const runtime = runtimeFiles({ environment: config.environment })
    if (slug === undefined && action === 'add') {
      throw new UsageError('give the file of the model: weir models add FILE.gguf --id ORG/NAME')
    }
    if (slug !== undefined && (action === 'add' || (action === 'pull' && slug.startsWith('hf:')))) {
      const isHub = action === 'pull'
      await withProgress(async (onProgress) => {
        await runtime.pull({ onProgress })
        await (isHub ? pullFromHub(flags, config, slug, onProgress) : addFile(flags, config, slug))
      })
      return
    }
    if (flags.text('id') !== undefined || flags.text('context') !== undefined) {
      throw new UsageError('--id and --context are for models of your own: add FILE, or pull hf:ORG/REPO')
    }
    if (action === 'list') {
      flags.refuseMore(1)
      const data = config.catalog.read().map((model) => viewOf(model, files, runtime.stateOf()))
      return flags.print({ object: 'list', data }, (shown) => modelsText(data, shown))
    }
    const act = actions.get(action ?? '')
    if (!act) throw new UsageError('choose an action: list, pull, add, pause or remove')
    if (!slug) throw new UsageError(`give the slug of a model: weir models ${action} SLUG`)
    if (action === 'remove' && forgetModel(config, slug)) {
      return flags.print(
        { model: slug, removed: true },
        () => `${slug} is out of the catalog. Its file is still there.`,
      )
    }
    const known = findModel(slug) ?? listedLocal(config.catalog.read(), slug)
    if (!known) throw new UsageError(whyUnknown(slug))
    const id = known.catalog.id
    const call = { flags, files, runtime, slug: id, dataDir: config.dataDir }
    // Models may be downloaded before the first start creates a ledger.
    if (!hasLedger(config)) return act(call)
    const state = async (): Promise<object> => ({
      state: LOCAL_STATES[files.stateOf(id)],
      received_bytes: files.receivedBytes(id),
    })
    return withStore(flags, { changes: false }, ({ record }) =>
      record({ action: `${action}Model`, subject: id, body: undefined, state }, () => act(call)),
    )
  },
}

/** Every failure with files has a remedy: no space, no network, a corrupt file. */
function explainFailure(error: unknown): never {
  throw new CommandFailed((error as Error).message, { cause: error })
}

/** Shows the progress of downloads while `work` runs. */
async function withProgress(work: (onProgress: (progress: Progress) => void) => Promise<void>): Promise<void> {
  const { stderr } = process
  const screen = stderr.isTTY ? openScreen(stderr, { hasBlock: !isDumbTerminal() }) : undefined
  try {
    await work((progress) => screen?.setBlock([progressBar(progress, stderr.columns)]))
  } catch (error) {
    if (error instanceof UsageError) throw error
    explainFailure(error)
  } finally {
    screen?.close()
  }
}

interface Call {
  readonly flags: Flags
  readonly files: ModelFiles
  readonly runtime: RuntimeFiles
  readonly slug: string
  readonly dataDir: string
}

async function pull({ flags, files, runtime, slug }: Call): Promise<void> {
  if (files.orderOf(slug) !== undefined) files.setOrder(slug, undefined)
  await withProgress(async (onProgress) => {
    await runtime.pull({ onProgress })
    await files.pull(slug, { onProgress })
  })
  flags.print({ model: slug, state: 'ready' }, () => `${slug} is ready.`)
}

async function pause({ flags, files, slug }: Call): Promise<void> {
  if (files.isPresent(slug)) throw new CommandFailed(`${slug} is downloaded, so there is nothing to pause.`)
  files.setOrder(slug, 'pause')
  const received = files.receivedBytes(slug)
  flags.print(
    { model: slug, state: 'paused', received_bytes: received },
    () => `${slug} is paused, with ${bytesText(received)} on the disk. Continue with: weir models pull ${slug}`,
  )
}

async function remove({ flags, files, slug, dataDir }: Call): Promise<void> {
  const answer = (await removeModelOf(dataDir, slug)) ?? (await files.remove(slug).catch(explainFailure))
  if ('error' in answer) throw new CommandFailed(answer.error)
  const { removed, alsoGone, freedBytes } = answer
  const others = alsoGone.length > 0 ? ` That also removed ${alsoGone.join(', ')}, which shared its files.` : ''
  flags.print(
    { model: slug, removed, also_gone: alsoGone, freed_bytes: freedBytes },
    () => `${slug} has been removed. ${bytesText(freedBytes)} of the disk are free again.${others}`,
  )
}

const actions: ReadonlyMap<string, (call: Call) => Promise<void>> = new Map([
  ['pull', pull],
  ['pause', pause],
  ['remove', remove],
])

interface ModelView {
  readonly id: string
  readonly name: string
  readonly aliases: readonly string[]
  readonly categories: readonly string[]
  readonly modes: readonly string[]
  readonly endpoints: readonly string[]
  readonly context_length: number
  readonly pricing: ModelPrices
  readonly engine: string | null
  readonly state: (typeof LOCAL_STATES)[FilesState] | 'remote' | 'no engine'
  readonly size_mb: number | null
  /** How much of a local model is on the disk. */
  readonly received_bytes: number | null
  /** Why the last download failed. */
  readonly problem: string | null
}

const engineOf = (model: Model): EngineDescription | undefined => model.serverless?.engine ?? model.dedicated[0]?.engine

function localOf(model: Model): ReturnType<typeof findModel> {
  const engine = engineOf(model)
  return engine?.kind === 'embedded' ? findModel(engine.model) : undefined
}

/** The catalog may offer a local model under another name, and lists it by that. */
function listedLocal(models: readonly Model[], slug: string): ReturnType<typeof findModel> {
  const listed = models.find(({ id, aliases }) => id === slug || aliases.includes(slug))
  return listed && localOf(listed)
}

function viewOf(model: Model, files: ModelFiles, runtime: FilesState): ModelView {
  const [engine, local] = [engineOf(model), localOf(model)]
  return {
    id: model.id,
    name: model.name,
    aliases: model.aliases,
    categories: model.categories,
    modes: modesOf(model),
    endpoints: endpointsOf(model),
    context_length: model.contextLength,
    pricing: listPrices(model),
    engine: engine?.kind ?? null,
    state: local ? LOCAL_STATES[bothStates(files.stateOf(local.catalog.id), runtime)] : engine ? 'remote' : 'no engine',
    size_mb: local ? Math.round(modelBytes(local) / 1_000_000) : null,
    received_bytes: local ? files.receivedBytes(local.catalog.id) : null,
    problem: (local && files.problemOf(local.catalog.id)) ?? null,
  }
}

const LOCAL_STATES = {
  present: 'ready',
  arriving: 'downloading',
  paused: 'paused',
  failed: 'failed',
  missing: 'not downloaded',
} as const
const TONES = {
  ready: 'green',
  downloading: 'yellow',
  paused: 'yellow',
  failed: 'red',
  'not downloaded': 'yellow',
  remote: undefined,
  'no engine': 'red',
} as const

const COLUMNS: readonly Column<ModelView>[] = [
  { title: 'MODEL', cell: ({ id }) => id },
  { title: 'KIND', cell: ({ categories }) => categories.join(', ') },
  { title: 'STATE', cell: stateText, tone: ({ state }) => TONES[state] },
  { title: 'SIZE', cell: ({ size_mb: size }) => (size === null ? null : bytesText(size * 1_000_000)), align: 'right' },
  { title: 'A$ PER 1M', cell: ({ pricing }) => shortPrices(pricing) },
]

function stateText({ state, size_mb: size, received_bytes: received }: ModelView): string {
  const isPartial = (state === 'downloading' || state === 'paused') && size !== null && received !== null
  return isPartial ? `${state}, ${Math.floor((100 * received) / Math.max(1, size * 1_000_000))}%` : state
}

export function modelsText(data: readonly ModelView[], view: View): string {
  const missing = data.find(({ state }) => state === 'not downloaded')
  return [
    renderTable(data, COLUMNS, view),
    '',
    'Prices exclude GST: input / output per 1M tokens, or the unit that is named.',
    ...data.flatMap(({ id, problem }) => (problem === null ? [] : [`${id} could not be downloaded: ${problem}`])),
    ...(missing ? [`Download a model with: weir models pull ${missing.id}`] : []),
  ].join('\n')
}

/** Without the price of cached input and the prices by image size, which weir models list --json has. */
function shortPrices(pricing: ModelPrices): string {
  const { input_per_million: input = '0.00', output_per_million: output = '0.00' } = pricing
  if (pricing.per_image !== undefined) return `${pricing.per_image}/image`
  if (pricing.per_audio_minute !== undefined) return `${pricing.per_audio_minute}/min`
  if (/[1-9]/.test(output)) return `${input} / ${output}`
  return /[1-9]/.test(input) ? input : 'free'
}
