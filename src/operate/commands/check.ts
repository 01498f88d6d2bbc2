import { catalogWarnings } from '../../catalog/warnings.ts'
import { findMistakes, loadConfig, type Config } from '../../config.ts'
import { deploymentsOf, type Model } from '../../catalog/model.ts'
import { untakenParameters, untakenWarning } from '../../engines/dialects/listed-parameters.ts'
import { engineProblem } from '../../local-models/catalog-models.ts'
import { hasLedger } from '../../store/database-choice.ts'
import { openStoreHere } from '../../store/open.ts'
import { overridesOf, parseFlags, ProblemsFound, type Command } from '../../cli/command.ts'
import { counted } from '../../shared/counts.ts'
import type { View } from '../../cli/terminal/view.ts'

interface Checked {
  readonly file: string | null
  readonly mistakes: readonly string[]
  readonly warnings: readonly string[]
}

export const check: Command = {
  summary: 'list every mistake in weir.yaml and its catalog',
  help: `weir check [--config FILE]

Reads weir.yaml, its catalog and the environment as weir serve would, and lists
every mistake at once, each with its line. Also warns about what is allowed but
probably not meant: a price that a model of this kind is never charged for, a
workspace that does not exist, and a parameter that the engine does not take.
Changes nothing. Exits with status 1 if there is a mistake; warnings alone do
not count.

  --port N   check this port as well`,
  async run(args) {
    const flags = parseFlags(args, { port: 'string' })
    const overrides = overridesOf(flags)
    const { file, mistakes } = findMistakes(overrides)
    const config = mistakes.length === 0 ? loadConfig(overrides) : undefined
    const checked: Checked = config ? await checkCatalog(config) : { file: file ?? null, mistakes, warnings: [] }
    flags.print(checked, (view) => checkText(checked, view))
    if (checked.mistakes.length > 0) throw new ProblemsFound('mistakes found; see above')
  },
}

async function checkCatalog(config: Config): Promise<Checked> {
  const models = config.catalog.read()
  const names = await workspaceNames(config)
  return {
    file: config.file ?? null,
    mistakes: modelMistakes(models),
    // Which workspaces will exist is unknown before the first start.
    warnings: [
      ...catalogWarnings(models, names ?? models.flatMap(workspacesIn)),
      ...untakenParameters(models).map(untakenWarning),
    ],
  }
}

function modelMistakes(models: readonly Model[]): readonly string[] {
  return models
    .flatMap(deploymentsOf)
    .map(({ lane, engine }) => ({ lane, problem: engineProblem(engine) }))
    .flatMap(({ lane, problem }) => (problem === undefined ? [] : [`${lane}: ${problem}`]))
}

async function workspaceNames({ dataDir, databaseUrl }: Config): Promise<readonly string[] | undefined> {
  if (!hasLedger({ dataDir, databaseUrl })) return undefined
  const store = await openStoreHere({ dataDir, databaseUrl, exclusive: false })
  try {
    return (await store.workspaces()).map(({ name }) => name)
  } finally {
    await store.close()
  }
}

function workspacesIn({ dedicated, visibleTo = [] }: Model): readonly string[] {
  return [...visibleTo, ...dedicated.flatMap(({ workspace }) => workspace ?? [])]
}

function checkText({ file, mistakes, warnings }: Checked, { paint }: View): string {
  const subject = file ?? 'The configuration'
  const summary =
    mistakes.length > 0
      ? `${subject} has ${counted(mistakes.length, 'mistake')}.`
      : `${subject} is correct${warnings.length === 0 ? '' : `, with ${counted(warnings.length, 'warning')}`}.`
  return [
    ...mistakes.map((mistake) => `${paint('red', '✖')} ${mistake}`),
    ...warnings.map((warning) => `${paint('yellow', '!')} ${warning}`),
    summary,
  ].join('\n')
}
