import { join, resolve } from 'node:path'
import { stringify } from 'yaml'
import { parseCatalog } from '../file.ts'
import { CommandFailed, UsageError, type Flags } from '../../cli/command.ts'
import type { Config } from '../../config.ts'
import type { Progress } from '../../cli/terminal/progress.ts'
import { hubModel } from '../../local-models/files/hub-repository.ts'
import { modelFiles } from '../../local-models/files/model-files.ts'
import { keepEntries, keptEntries, ownEntry } from '../../local-models/own-models.ts'

/** `weir models add FILE` and `weir models pull hf:ORG/REPO`. A part of models.ts. */

export async function addFile(flags: Flags, config: Config, given: string): Promise<void> {
  const id = flags.text('id')
  if (id === undefined) throw new UsageError('give the model a name: weir models add FILE.gguf --id ORG/NAME')
  await addToCatalog(flags, config, resolve(given), id)
}

/** Downloads a model of a hub, and adds it. What an interrupted download left is continued. */
export async function pullFromHub(
  flags: Flags,
  config: Config,
  reference: string,
  onProgress: (progress: Progress) => void,
): Promise<void> {
  const model = await hubModel(reference, config.environment)
  const files = modelFiles(config.modelsDir, { environment: config.environment, models: [model] })
  await files.pull(model.catalog.id, { onProgress })
  const [first] = model.files
  if (!first) throw new CommandFailed(`${reference} has no files.`)
  await addToCatalog(flags, config, join(config.modelsDir, first.path), flags.text('id') ?? model.catalog.id)
}

/** The default catalog keeps the entry. A catalog that is a file belongs to its writer, who gets the lines for it. */
async function addToCatalog(flags: Flags, config: Config, file: string, id: string): Promise<void> {
  const others = config.catalog.read().filter(({ serverless }) => !serverless?.engine?.model.endsWith(`:${file}`))
  if (others.some((model) => model.id === id || model.aliases.includes(id))) {
    throw new CommandFailed(`"${id}" is already the name of a model; give another one with --id.`)
  }
  const entry = await ownEntry(file, id, contextOf(flags))
  parseCatalog(JSON.stringify({ models: [entry] }), 'the new entry', () => undefined)
  if (config.catalog.file === undefined) {
    keepEntries(config.modelsDir, [...keptEntries(config.modelsDir).filter((it) => it.id !== id), entry])
    return flags.print(
      { model: id, entry },
      () => `${id} is in the catalog. A service that runs serves it after a restart.`,
    )
  }
  const lines = stringify({ models: [entry] }, { lineWidth: 0 })
  flags.print(
    { model: id, entry },
    () => `# Add this to ${config.catalog.file}, and set your prices: A$ per million tokens.\n${lines.trimEnd()}`,
  )
}

function contextOf(flags: Flags): number | undefined {
  const text = flags.text('context')
  if (text === undefined || /^[1-9]\d{2,6}$/.test(text)) return text === undefined ? undefined : Number(text)
  throw new UsageError('--context must be a whole number of tokens from 100 to 9999999')
}

/** False if it was not added by `weir models add`. The file stays. */
export function forgetModel(config: Config, id: string): boolean {
  const kept = keptEntries(config.modelsDir)
  const left = kept.filter((it) => it.id !== id)
  if (config.catalog.file !== undefined || left.length === kept.length) return false
  keepEntries(config.modelsDir, left)
  return true
}
