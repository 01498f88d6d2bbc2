/** Zero crossings of the filter on each side. More are sharper and slower. */
const HALF_WIDTH = 16

/** Band-limited resampling: a windowed sinc below the lower of the two Nyquist rates, with one set of weights per phase. */
export function resample(input: Float32Array, from: number, to: number): Float32Array {
  if (from === to) return input
  const divisor = greatestCommonDivisor(from, to)
  const [up, down] = [to / divisor, from / divisor]
  const cutoff = Math.min(1, to / from)
  const reach = Math.ceil(HALF_WIDTH / cutoff)
  const phases = Array.from({ length: up }, (_, phase) => phaseWeights(phase / up, cutoff, reach))
  const output = new Float32Array(Math.floor((input.length * to) / from))
  for (let index = 0; index < output.length; index++) {
    const position = index * down
    const weights = phases[position % up] ?? new Float64Array()
    const first = Math.floor(position / up) - reach + 1
    let sum = 0
    for (let k = 0; k < weights.length; k++) sum += (weights[k] ?? 0) * (input[first + k] ?? 0)
    output[index] = sum
  }
  return output
}

function phaseWeights(fraction: number, cutoff: number, reach: number): Float64Array {
  return Float64Array.from({ length: 2 * reach }, (_, k) => {
    const distance = k - reach + 1 - fraction
    const x = Math.PI * distance * cutoff
    const sinc = x === 0 ? 1 : Math.sin(x) / x
    const hann = 0.5 + 0.5 * Math.cos((Math.PI * distance) / (reach + 1))
    return cutoff * sinc * hann
  })
}

function greatestCommonDivisor(one: number, other: number): number {
  return other === 0 ? one : greatestCommonDivisor(other, one % other)
}
