import { createHash } from 'node:crypto'
import type { CheckedYaml } from '../shared/checked-yaml.ts'
import type { Path } from '../shared/json/schema-check.ts'
import { adapterKinds, deploymentsOf, type Adapter, type Deployment, type EngineKind, type Model } from './model.ts'

/** `adapter_of` of an entry: the model runs where its base does. A part of file.ts. */

interface EntryRead {
  readonly entry: {
    readonly adapter_of?: string | undefined
    readonly adapter_source?: string | undefined
    readonly serverless?: unknown
    readonly dedicated?: unknown
  }
  readonly path: Path
  readonly model: Model
}

/** Reports mistakes to `yaml`. */
export function withAdapters(read: readonly EntryRead[], yaml: CheckedYaml<unknown>): readonly Model[] {
  const entries = new Map(read.map((it) => [it.model.id, it]))
  return read.map(({ entry, path, model }) => {
    const { adapter_of: baseId, adapter_source: source } = entry
    const mistake = (field: string, text: string): Model => {
      yaml.mistake([...path, field], text)
      return model
    }
    if (!baseId && !source) return model
    if (!baseId) return mistake('adapter_of', 'is required with adapter_source: the id of the base model')
    if (!source) return mistake('adapter_source', 'is required with adapter_of: where the engine finds the adapter')
    for (const field of ['serverless', 'dedicated'] as const) {
      if (entry[field]) mistake(field, 'is not allowed with adapter_of: the model runs where its base does')
    }
    const base = entries.get(baseId)
    if (!base) return mistake('adapter_of', `"${baseId}" is not the id of a model`)
    if (base.entry.adapter_of) return mistake('adapter_of', `${baseId} is an adapter itself; name its base`)
    const unable = deploymentsOf(base.model).find(({ engine }) => engine && !takesAdapters(engine.kind))
    if (unable) {
      return mistake(
        'adapter_of',
        `${baseId} runs on ${unable.engine?.kind}; only ${adapterKinds.join(', ')} take adapters`,
      )
    }
    if (model.categories.some((category) => category !== 'llm' && category !== 'vision')) {
      mistake('categories', 'must be llm or vision: only models that generate text take adapters')
    }
    if (model.contextLength > base.model.contextLength) {
      mistake('context_length', `must be at most that of ${baseId} (${base.model.contextLength})`)
    }
    return adapterOf(model, base.model, { name: nameOf(model.id, source), source })
  })
}

function adapterOf(model: Model, base: Model, adapter: Adapter): Model {
  const applied = (deployment: Deployment): Deployment => {
    const { engine } = deployment
    // vLLM serves an adapter as a model of its own; at others a field of the call names it.
    const own = engine?.kind === 'vllm' ? { ...engine, model: adapter.name } : engine
    return { ...deployment, engine: own, adapter }
  }
  return {
    ...model,
    adapterOf: base.id,
    serverless: base.serverless && applied(base.serverless),
    dedicated: base.dedicated.map(applied),
  }
}

function takesAdapters(kind: EngineKind): boolean {
  return (adapterKinds as readonly EngineKind[]).includes(kind)
}

function nameOf(id: string, source: string): string {
  return `${id}-${createHash('sha256').update(source).digest('hex').slice(0, 12)}`
}
