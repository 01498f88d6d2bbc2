/** mulberry32: small, fast, and the same numbers everywhere for the same seed. Uniform in [0, 1). */
export function seededRandom(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** Box–Muller over the uniform numbers. */
export function gaussianNoise(seed: number, count: number): Float32Array {
  const random = seededRandom(seed)
  const noise = new Float32Array(count)
  for (let index = 0; index < count; index += 2) {
    const radius = Math.sqrt(-2 * Math.log(1 - random()))
    const angle = 2 * Math.PI * random()
    noise[index] = radius * Math.cos(angle)
    if (index + 1 < count) noise[index + 1] = radius * Math.sin(angle)
  }
  return noise
}
