import { existsSync, statSync } from 'node:fs'
import type { ManifestModel, ModelFile, OwnLoader } from './contract.ts'

/** Working space besides the weights, until the loaded model reports what it takes. */
const WORKING_SHARE = 0.2
const isSlug = /^(gguf-chat|gguf-embedding|gguf-reranker)@(\d{1,9}):(\/.{1,4096})$/s
const isShard = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/s

/** A model that is a file of the operator's, by the name that the gateway gives it (`OwnModelSlug`). */
export function ownModel(slug: string): ManifestModel | undefined {
  const [, loader, contextTokens, path] = isSlug.exec(slug) ?? []
  if (loader === undefined || path === undefined) return undefined
  const files = shardsOf(path).map((shard, index): ModelFile => {
    const bytes = existsSync(shard) ? statSync(shard).size : 0
    return { role: index === 0 ? 'model' : `model-${index + 1}`, path: shard, bytes, sources: [] }
  })
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  return {
    catalog: {
      id: slug,
      aliases: [],
      name: path,
      description: '',
      categories: [],
      context_length: Number(contextTokens),
      max_completion_tokens: Number(contextTokens),
      supported_parameters: [],
      pricing: {},
    },
    runtime: 'llama',
    loader: loader as OwnLoader,
    license: '',
    delivery: 'own',
    memoryBytes: Math.ceil(bytes * (1 + WORKING_SHARE)),
    files,
  }
}

/** Of all parts of a model. Throws if one of them is not there. */
export function bytesOf(path: string): number {
  const parts = shardsOf(path)
  if (parts[0] !== path) throw new Error(`${path} is a part of a split model; give the first one, ${parts[0]}.`)
  return parts.reduce((sum, part) => {
    const found = statSync(part, { throwIfNoEntry: false })
    if (!found)
      throw new Error(
        `There is no file ${part}.${parts.length > 1 ? ' All parts of a split model have to be in one folder.' : ''}`,
      )
    if (!found.isFile()) throw new Error(`${part} is no file. Give the path of a .gguf file.`)
    return sum + found.size
  }, 0)
}

/** The parts of a model that was split; llama.cpp finds the others by the name of the first. */
function shardsOf(path: string): readonly string[] {
  const [, name, , count] = isShard.exec(path) ?? []
  if (name === undefined) return [path]
  const number = (index: number): string => String(index).padStart(5, '0')
  return Array.from({ length: Number(count) }, (_, index) => `${name}-${number(index + 1)}-of-${count}.gguf`)
}
