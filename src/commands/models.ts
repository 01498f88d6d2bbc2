import { listPrices } from '../catalog/price-book.ts'
import { endpointsOf, modesOf, type Model } from '../core/catalog.ts'
import { modelFiles, type ModelFiles } from '../embedded/files/model-files.ts'
import { findModel, modelBytes } from '../embedded/manifest/manifest.ts'
import { configOf, parseFlags, print, table, UsageError, type Command, type Flags } from './command.ts'
import { CLEAR_LINE, progressBar } from './fetch-display.ts'

export const models: Command = {
  summary: 'list models; download or remove those that Weir runs itself',
  help: `weir models list
weir models pull SLUG
weir models remove SLUG

"list" shows the models of the catalog, with list prices in AUD excluding GST,
and whether the models that Weir runs itself are downloaded. "pull" downloads
and verifies a model; it resumes after an interruption, and a running service
uses the model as soon as it is complete. "remove" deletes its files.`,
  async run(args) {
    const flags = parseFlags(args)
    const [action, slug] = flags.positionals
    const config = configOf(flags)
    const files = modelFiles(config.modelsDir, { environment: config.environment })
    if (action === 'list') {
      const data = config.catalog.read().map((model) => view(model, files))
      return print(flags, { object: 'list', data }, () =>
        table(data, ['id', 'categories', 'state', 'size_mb', 'pricing']),
      )
    }
    if (action !== 'pull' && action !== 'remove') throw new UsageError('choose an action: list, pull or remove')
    if (!slug) throw new UsageError(`give the slug of a model: weir models ${action} SLUG`)
    const known = findModel(slug)
    if (!known) throw new UsageError(`the embedded engine does not know "${slug}"; see weir models list`)
    return action === 'pull' ? pull(flags, files, known.catalog.id) : remove(flags, files, known.catalog.id)
  },
}

async function pull(flags: Flags, files: ModelFiles, slug: string): Promise<void> {
  const isTerminal = process.stderr.isTTY
  await files.pull(slug, {
    onProgress(progress) {
      if (isTerminal) process.stderr.write(`${CLEAR_LINE}${progressBar(progress)}`)
    },
  })
  if (isTerminal) process.stderr.write(CLEAR_LINE)
  print(flags, { model: slug, state: 'ready' }, () => `${slug} is ready.`)
}

async function remove(flags: Flags, files: ModelFiles, slug: string): Promise<void> {
  const { removed, alsoGone } = await files.remove(slug)
  const others = alsoGone.length > 0 ? ` That also removed ${alsoGone.join(', ')}, which shared its files.` : ''
  print(flags, { model: slug, removed, also_gone: alsoGone }, () => `${slug} has been removed.${others}`)
}

function view(model: Model, files: ModelFiles): object {
  const engine = model.serverless?.engine ?? model.dedicated[0]?.engine
  const local = engine?.kind === 'embedded' ? findModel(engine.model) : undefined
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
    state: local ? (files.isPresent(local.catalog.id) ? 'ready' : 'to pull') : engine ? 'remote' : 'no engine',
    size_mb: local ? Math.round(modelBytes(local) / 1_000_000) : null,
  }
}
