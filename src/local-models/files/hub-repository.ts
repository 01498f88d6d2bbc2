import { request } from 'undici'
import type { ManifestModel, ModelFile } from '../../../packages/local-models/contract.ts'
import { dispatcherFor, HttpStatusError } from './download.ts'
import { hubAddress, hubHeaders } from './file-sources.ts'

interface ListedFile {
  readonly path: string
  readonly size: number
  /** Of a file in the hub's storage for large files. */
  readonly lfs?: { readonly oid: string }
}

const isReference = /^hf:([\w.-]{1,96})\/([\w.-]{1,96})(?::([\w.-]{1,64}))?$/
const isShardEnd = /-\d{5}-of-\d{5}$/
/** Chosen if the reference names none: a good answer for its size. */
const USUAL_QUANTS = ['q4_k_m', 'q8_0']

/** The model that `hf:ORG/REPO[:QUANT]` refers to, with the sizes and hashes that the hub lists. */
export async function hubModel(reference: string, environment: NodeJS.ProcessEnv): Promise<ManifestModel> {
  const [, organisation, name, quant] = isReference.exec(reference) ?? []
  if (organisation === undefined || name === undefined) {
    throw new Error(`"${reference}" is not of the form hf:ORG/REPO or hf:ORG/REPO:QUANT.`)
  }
  const repository = `${organisation}/${name}`
  const chosen = choose(await listed(repository, environment), repository, quant)
  const files = chosen.map(({ path, size, lfs }, index): ModelFile => ({
    role: index === 0 ? 'model' : `model-${index + 1}`,
    path: `hub/${repository}/${path}`,
    bytes: size,
    ...(lfs ? { sha256: lfs.oid } : {}),
    sources: [{ kind: 'hub', repository, revision: 'main', path }],
  }))
  return {
    catalog: {
      id: repository.toLowerCase(),
      aliases: [],
      name,
      description: '',
      categories: [],
      context_length: 0,
      max_completion_tokens: 0,
      supported_parameters: [],
      pricing: {},
    },
    runtime: 'llama',
    loader: 'gguf-chat',
    license: '',
    delivery: 'pull',
    memoryBytes: 0,
    files,
  }
}

async function listed(repository: string, environment: NodeJS.ProcessEnv): Promise<readonly ListedFile[]> {
  const hub = hubAddress(environment)
  const url = `${hub}/api/models/${repository}/tree/main?recursive=true`
  const options = { dispatcher: dispatcherFor(), headers: hubHeaders(environment) }
  const answer = await request(url, options).catch((error: Error) => {
    throw new Error(`The hub ${hub} cannot be reached (${error.message}). HF_ENDPOINT names another one.`, {
      cause: error,
    })
  })
  if (answer.statusCode !== 200) {
    await answer.body.dump()
    throw new HttpStatusError(answer.statusCode, url)
  }
  const files = (await answer.body.json()) as readonly ListedFile[]
  return files.filter(({ path, lfs }) => isModel(path) && lfs !== undefined)
}

/** A projector for images is not a model of its own. No path may leave the folder of its repository. */
function isModel(path: string): boolean {
  const isSafe = path.split('/').every((part) => part !== '..' && part !== '' && part !== '.')
  return isSafe && path.endsWith('.gguf') && !path.includes('mmproj')
}

/** All shards of one model, in their order. */
function choose(files: readonly ListedFile[], repository: string, quant: string | undefined): readonly ListedFile[] {
  const models = Map.groupBy(files, ({ path }) => path.slice(0, -'.gguf'.length).replace(isShardEnd, ''))
  const names = [...models.keys()]
  if (names.length === 0) throw new Error(`${repository} has no .gguf files.`)
  const wanted = quant === undefined ? USUAL_QUANTS : [quant.toLowerCase()]
  const found = wanted
    .map((ending) => names.filter((it) => it.toLowerCase().endsWith(ending)))
    .find((it) => it.length > 0)
  const [only, ...others] = found ?? (quant === undefined && names.length === 1 ? names : [])
  if (only === undefined || others.length > 0) {
    throw new Error(`Choose one model of ${repository} with hf:${repository}:QUANT. It has ${names.join(', ')}.`)
  }
  return (models.get(only) ?? []).toSorted((one, other) => one.path.localeCompare(other.path))
}
