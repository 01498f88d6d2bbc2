import { deploymentsOf, type Model } from './model.ts'
import { listPrices } from './list-prices.ts'

/** What a catalog would change, model by model and field by field, in the terms of the file. */
export interface ModelChange {
  readonly model: string
  readonly change: 'added' | 'removed' | 'changed'
  readonly fields: readonly FieldChange[]
}

export interface FieldChange {
  readonly field: string
  readonly before: string | null
  readonly after: string | null
}

export function catalogDiff(before: readonly Model[], after: readonly Model[]): readonly ModelChange[] {
  const old = new Map(before.map((model) => [model.id, model]))
  const next = new Map(after.map((model) => [model.id, model]))
  const removed = before.filter(({ id }) => !next.has(id))
  return [
    ...after.flatMap((model): ModelChange[] => {
      const previous = old.get(model.id)
      const fields = changesIn(previous ? fieldsOf(previous) : {}, fieldsOf(model))
      if (fields.length === 0) return []
      return [{ model: model.id, change: previous ? 'changed' : 'added', fields }]
    }),
    ...removed.map(({ id }): ModelChange => ({ model: id, change: 'removed', fields: [] })),
  ]
}

function changesIn(before: Fields, after: Fields): readonly FieldChange[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return names
    .map((field) => ({ field, before: before[field] ?? null, after: after[field] ?? null }))
    .filter((it) => it.before !== it.after)
}

type Fields = Readonly<Record<string, string>>

function fieldsOf(model: Model): Fields {
  const fields: Record<string, string> = {
    name: model.name,
    description: model.description,
    aliases: model.aliases.join(', '),
    categories: model.categories.join(', '),
    context_length: String(model.contextLength),
    max_completion_tokens: String(model.maxCompletionTokens),
    default_max_tokens: String(model.defaultMaxTokens),
    supported_parameters: model.supportedParameters.join(', '),
    visible_to: model.visibleTo?.join(', ') ?? '',
    adapter_of: model.adapterOf ?? '',
    adapter_source: sourceOf(model),
  }
  for (const [name, price] of Object.entries(listPrices(model))) fields[`pricing.${name}`] = textOf(price)
  for (const { lane, engine, limits, perHour } of deploymentsOf(model)) {
    const place = lane === model.id ? 'serverless' : lane
    // Engine keys are secrets, so they are not shown.
    if (engine) fields[`${place}.engine`] = [engine.kind, engine.model, ...engine.urls].join(' ')
    const { batch = {}, maxFlexWaitMs, ...ofLane } = limits
    const ofBatch = Object.entries(batch).map(([name, limit]) => [`batch.${snake(name)}`, limit] as const)
    const named = Object.entries(ofLane).map(([name, limit]) => [snake(name), limit] as const)
    for (const [name, limit] of [...named, ...ofBatch, ['flex.max_wait_ms', maxFlexWaitMs] as const]) {
      if (limit !== undefined) fields[`${place}.limits.${name}`] = String(limit)
    }
    if (perHour !== undefined) fields[`${place}.per_hour`] = perHour
  }
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ''))
}

/** All of its places have the same. */
const sourceOf = ({ serverless, dedicated: [reserved] }: Model): string =>
  (serverless ?? reserved)?.adapter?.source ?? ''
const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
const snake = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
