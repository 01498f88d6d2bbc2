export const SAMPLE_RATE = 16_000
const WINDOW_SAMPLES = 400
const HOP_SAMPLES = 160
const BINS = WINDOW_SAMPLES / 2 + 1

/** Whisper's input, band by band: log mel energies of 25 ms windows, one every 10 ms. */
export function melSpectrogram(samples: Float32Array, bands: number, frames: number): Float32Array {
  const filters = melFilters(bands)
  const fft = realFft(WINDOW_SAMPLES)
  const hann = Float32Array.from(
    { length: WINDOW_SAMPLES },
    (_, n) => 0.5 - 0.5 * Math.cos((2 * Math.PI * n) / WINDOW_SAMPLES),
  )
  const values = new Float32Array(bands * frames)
  const frame = new Float64Array(WINDOW_SAMPLES)
  let max = -Infinity
  for (let index = 0; index < frames; index++) {
    const start = index * HOP_SAMPLES - WINDOW_SAMPLES / 2
    for (let n = 0; n < WINDOW_SAMPLES; n++) frame[n] = (hann[n] ?? 0) * sampleAt(samples, start + n)
    const power = fft(frame)
    for (let band = 0; band < bands; band++) {
      const { first, weights } = filters[band] ?? { first: 0, weights: [] }
      let energy = 0
      for (let k = 0; k < weights.length; k++) energy += (weights[k] ?? 0) * (power[first + k] ?? 0)
      const value = Math.log10(Math.max(energy, 1e-10))
      values[band * frames + index] = value
      if (value > max) max = value
    }
  }
  for (let index = 0; index < values.length; index++) values[index] = (Math.max(values[index] ?? 0, max - 8) + 4) / 4
  return values
}

/** Mirrored before the beginning, silent after the end. */
function sampleAt(samples: Float32Array, index: number): number {
  return samples[index < 0 ? -index : index] ?? 0
}

interface Filter {
  readonly first: number
  readonly weights: readonly number[]
}

const filtersByBands = new Map<number, readonly Filter[]>()

/** Triangles on the Slaney mel scale, each of unit area. */
function melFilters(bands: number): readonly Filter[] {
  const known = filtersByBands.get(bands)
  if (known) return known
  const top = melOfHertz(SAMPLE_RATE / 2)
  const edges = Array.from({ length: bands + 2 }, (_, index) => hertzOfMel((top * index) / (bands + 1)))
  const filters = Array.from({ length: bands }, (_, band): Filter => {
    const [low = 0, centre = 0, high = 0] = edges.slice(band, band + 3)
    const all = Array.from({ length: BINS }, (_, bin) => {
      const hertz = (bin * SAMPLE_RATE) / WINDOW_SAMPLES
      const height = Math.min((hertz - low) / (centre - low), (high - hertz) / (high - centre))
      return (Math.max(0, height) * 2) / (high - low)
    })
    const first = Math.max(
      0,
      all.findIndex((weight) => weight > 0),
    )
    return { first, weights: all.slice(first, all.findLastIndex((weight) => weight > 0) + 1) }
  })
  filtersByBands.set(bands, filters)
  return filters
}

/** Linear up to 1000 Hz, logarithmic above. */
function melOfHertz(hertz: number): number {
  return hertz < 1000 ? (3 * hertz) / 200 : 15 + (27 * Math.log(hertz / 1000)) / Math.log(6.4)
}

function hertzOfMel(mel: number): number {
  return mel < 15 ? (200 * mel) / 3 : 1000 * Math.exp(((mel - 15) * Math.log(6.4)) / 27)
}

/** The power spectrum of a real signal, by mixed-radix Cooley–Tukey: fast if its length has small prime factors. */
function realFft(size: number): (input: Float64Array) => Float64Array {
  const cosines = Float64Array.from({ length: size }, (_, k) => Math.cos((2 * Math.PI * k) / size))
  const sines = Float64Array.from({ length: size }, (_, k) => Math.sin((2 * Math.PI * k) / size))
  const radices = primeFactors(size)
  const real = new Float64Array(size)
  const imaginary = new Float64Array(size)
  const scratchReal = new Float64Array(Math.max(...radices))
  const scratchImaginary = new Float64Array(Math.max(...radices))
  const power = new Float64Array(size / 2 + 1)

  function transform(
    input: Float64Array,
    length: number,
    offset: number,
    stride: number,
    out: number,
    level: number,
  ): void {
    const radix = radices[level]
    if (radix === undefined) {
      real[out] = input[offset] ?? 0
      imaginary[out] = 0
      return
    }
    const part = length / radix
    for (let r = 0; r < radix; r++)
      transform(input, part, offset + r * stride, stride * radix, out + r * part, level + 1)
    for (let k = 0; k < part; k++) {
      for (let q = 0; q < radix; q++) {
        const turn = (stride * (k + q * part)) % size
        let sumReal = 0
        let sumImaginary = 0
        for (let r = 0, angle = 0, at = out + k; r < radix; r++, at += part) {
          const cosine = cosines[angle] ?? 0
          const sine = sines[angle] ?? 0
          const re = real[at] ?? 0
          const im = imaginary[at] ?? 0
          sumReal += re * cosine + im * sine
          sumImaginary += im * cosine - re * sine
          angle += turn
          if (angle >= size) angle -= size
        }
        scratchReal[q] = sumReal
        scratchImaginary[q] = sumImaginary
      }
      for (let q = 0, at = out + k; q < radix; q++, at += part) {
        real[at] = scratchReal[q] ?? 0
        imaginary[at] = scratchImaginary[q] ?? 0
      }
    }
  }

  return (input) => {
    transform(input, size, 0, 1, 0, 0)
    for (let k = 0; k < power.length; k++) power[k] = (real[k] ?? 0) ** 2 + (imaginary[k] ?? 0) ** 2
    return power
  }
}

function primeFactors(value: number): number[] {
  const factors: number[] = []
  for (let prime = 2, left = value; left > 1; prime++) {
    for (; left % prime === 0; left /= prime) factors.push(prime)
  }
  return factors
}
