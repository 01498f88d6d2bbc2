import { seededSamples } from './seeded-samples.ts'

/** Normally distributed numbers that depend on the seed alone (Box–Muller). */
export function gaussianNoise(seed: number, count: number): Float32Array {
  const random = seededSamples(seed)
  const noise = new Float32Array(count)
  for (let index = 0; index < count; index += 2) {
    const radius = Math.sqrt(-2 * Math.log(1 - random()))
    const angle = 2 * Math.PI * random()
    noise[index] = radius * Math.cos(angle)
    if (index + 1 < count) noise[index + 1] = radius * Math.sin(angle)
  }
  return noise
}
