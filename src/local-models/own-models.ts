import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findModel, ggufFacts, manifest } from './installed.ts'
import { memoryProblem } from './catalog-models.ts'
import { admissionLimits, engineLimits, thisMachine } from './machine-limits.ts'
import type { GgufFacts, OwnLoader, OwnModelSlug } from '../../packages/local-models/contract.ts'

/** An entry of a catalog for a file of the operator's, with the names of `weir.yaml`. */
export interface OwnEntry {
  readonly id: string
  readonly serverless: {
    readonly engine: { readonly kind: 'embedded'; readonly file: string }
    readonly limits: object
  }
}

const loaders: Readonly<Record<GgufFacts['category'], OwnLoader>> = {
  llm: 'gguf-chat',
  embedding: 'gguf-embedding',
  reranker: 'gguf-reranker',
}
/** The memory of several sequences often could not hold all that a model was trained for. */
const USUAL_CONTEXT = 8192

/** Reads the file. Refuses one that the memory of this machine cannot hold. */
export async function ownEntry(file: string, id: string, context?: number): Promise<OwnEntry> {
  const facts = await ggufFacts(file)
  const { category, contextTokens = USUAL_CONTEXT } = facts
  if (context !== undefined && context > contextTokens) {
    throw new Error(`The model was trained for a context of ${contextTokens} tokens; give less with --context.`)
  }
  const machine = thisMachine()
  const chosen = context ?? Math.min(contextTokens, USUAL_CONTEXT)
  const sequences = category === 'llm' ? engineLimits(machine).parallelRequests : 1
  const problem = memoryProblem(facts.weightBytes + facts.contextBytes(chosen, sequences))
  if (problem !== undefined) {
    throw new Error(
      `With ${sequences} x ${chosen} tokens of context, ${problem}. Less context needs less: --context N.`,
    )
  }
  const slug: OwnModelSlug = `${loaders[category]}@${chosen}:${file}`
  const model = findModel(slug)
  if (!model) throw new Error(`${file} is no absolute path of a .gguf file.`)
  const limits = admissionLimits({ ...model, catalog: { ...model.catalog, categories: [category] } }, machine)
  return {
    id,
    ...(facts.name === undefined ? {} : { name: facts.name }),
    categories: [category],
    context_length: chosen,
    supported_parameters: parametersOf(category),
    ...(category === 'reranker' ? { rerank_schema: 'documents' } : {}),
    pricing: { input_per_million: '0', ...(category === 'llm' ? { output_per_million: '0' } : {}) },
    serverless: { engine: { kind: 'embedded', file }, limits },
  } as OwnEntry
}

/** Those of the models of this kind that the embedded engine knows. */
function parametersOf(category: GgufFacts['category']): readonly string[] {
  const alike = manifest.find(({ loader }) => loader === loaders[category])
  return alike?.catalog.supported_parameters ?? []
}

const pathIn = (modelsDirectory: string): string => join(modelsDirectory, 'own-models.json')

/** What `weir models add` has added to the default catalog. */
export function keptEntries(modelsDirectory: string): readonly OwnEntry[] {
  const path = pathIn(modelsDirectory)
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as readonly OwnEntry[]) : []
}

export function keepEntries(modelsDirectory: string, entries: readonly OwnEntry[]): void {
  mkdirSync(modelsDirectory, { recursive: true })
  writeFileSync(pathIn(modelsDirectory), JSON.stringify(entries), { flush: true })
}
