import { seededRandom } from '../../../src/shared/seeded-random.ts'

/** Choices that depend on the seed and the number of the input alone, so that each input can be made again. */
export interface Chance {
  /** A whole number from 0 to below. */
  below(limit: number): number
  /** Whether something with this probability happens. */
  is(probability: number): boolean
  pick<Item>(items: readonly Item[]): Item
}

export function chanceOf(seed: number, input: number): Chance {
  const random = seededRandom((seed ^ Math.imul(input + 1, 0x9e3779b1)) >>> 0)
  const below = (limit: number): number => Math.floor(random() * limit)
  return {
    below,
    is: (probability) => random() < probability,
    pick: (items) => items[below(items.length)]!,
  }
}
