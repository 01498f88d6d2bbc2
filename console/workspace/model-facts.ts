import { brief, price } from '../shared/format.ts'
import type { Health } from '../shared/parts.tsx'
import type { Model } from './api.ts'

/** What the pages say about a model. */

export type Category = Model['model_categories'][number]

export const categoryNames: Readonly<Record<Category, string>> = {
  llm: 'Chat',
  vision: 'Vision',
  embedding: 'Embeddings',
  reranker: 'Reranking',
  image: 'Images',
  audio: 'Audio',
}

export function pricesOf({
  pricing,
  model_categories: categories,
}: Model): readonly (readonly [string, string, string])[] {
  const { per_million_tokens: tokens, per_image: image, per_audio_minute: minute } = pricing
  const prices: (readonly [string, string, string])[] = []
  const isPaidByToken = !categories.every((it) => it === 'image' || it === 'audio')
  if (isPaidByToken || Number(tokens.input) > 0) prices.push(['Input', price(tokens.input), '/ 1M tokens'])
  if (tokens.cached_input !== null) prices.push(['Cached', price(tokens.cached_input), '/ 1M tokens'])
  const hasOutput = categories.includes('llm') || categories.includes('vision')
  if (hasOutput || Number(tokens.output) > 0) prices.push(['Output', price(tokens.output), '/ 1M tokens'])
  if (image !== null) prices.push(['Image', price(image), '/ image'])
  if (minute !== null) prices.push(['Audio', price(minute), '/ minute'])
  return prices
}

/** What the tiers flex and batch cost, if they have their own price. */
export function batchPriceOf({ pricing: { batch } }: Model): string | undefined {
  if (batch === null) return undefined
  const { input, output } = batch.per_million_tokens
  return `${price(input)} in, ${price(output)} out / 1M tokens`
}

export function availabilityOf(model: Model): readonly [Health, string] {
  if (model.available) return ['good', 'Ready']
  switch (model.unavailable_reason) {
    case 'model_access_denied':
      return ['idle', 'Reserved']
    case 'model_unavailable':
      return ['bad', 'Engine is down']
    case 'not_downloaded':
      return ['idle', 'Not downloaded']
    case 'downloading':
      return ['warn', 'Downloading']
    default:
      return ['idle', 'No engine']
  }
}

export const contextOf = ({ context_length: length }: Model): string => `${brief(length)} tokens`

export const modelPath = (id: string): string => `/console/models/${id.split('/').map(encodeURIComponent).join('/')}`
