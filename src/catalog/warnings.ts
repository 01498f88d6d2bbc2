import { deploymentsOf, type Category, type Model } from './model.ts'
import type { PriceList } from '../billing/rating/rating.ts'
import { listPrices } from './list-prices.ts'

/**
 * What is allowed in a catalog but most likely a mistake, as text for people. A workspace may be created later, and a
 * price that is never charged does no harm, so the catalog is applied anyway.
 */
export function catalogWarnings(models: readonly Model[], workspaces: readonly string[]): readonly string[] {
  return models.flatMap((model) => [...uselessPrices(model), ...unknownWorkspaces(model, workspaces)])
}

const charged: Readonly<Record<Category, readonly (keyof PriceList)[]>> = {
  llm: ['input_per_million', 'output_per_million', 'cached_input_per_million'],
  vision: ['input_per_million', 'output_per_million', 'cached_input_per_million'],
  embedding: ['input_per_million', 'cached_input_per_million'],
  reranker: ['input_per_million', 'cached_input_per_million'],
  image: ['per_image'],
  audio: ['per_audio_minute'],
}

function uselessPrices(model: Model): readonly string[] {
  const useful = new Set(model.categories.flatMap((category) => charged[category]))
  const { image_prices: _kinds, batch: _tiers, ...prices } = listPrices(model)
  const useless = Object.entries(prices).flatMap(([name, price]) =>
    /[1-9]/.test(price) && !useful.has(name as keyof PriceList) ? [name] : [],
  )
  if (useless.length === 0) return []
  const kinds = model.categories.join(' and ')
  return [`${model.id}: ${useless.join(' and ')} is never charged for ${kinds}; give ${[...useful].join(' or ')}`]
}

function unknownWorkspaces(model: Model, workspaces: readonly string[]): readonly string[] {
  const unknown = (names: readonly string[]): readonly string[] => names.filter((name) => !workspaces.includes(name))
  const reserved = unknown(deploymentsOf(model).flatMap(({ workspace }) => workspace ?? []))
  return [
    ...reserved.map((name) => `${model.id}: capacity is reserved for "${name}", but there is no such workspace`),
    ...unknown(model.visibleTo ?? []).map(
      (name) => `${model.id}: visible_to names "${name}", but there is no such workspace`,
    ),
  ]
}
