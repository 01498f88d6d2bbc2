const FRAME_SECONDS = 0.1

export interface PauseOptions {
  readonly sampleRate: number
  readonly minSeconds: number
  readonly maxSeconds: number
}

/** Cuts a recording into windows of `minSeconds` to `maxSeconds`, each at the quietest moment it could end at. */
export function* windowsAtPauses(samples: Float32Array, options: PauseOptions): Generator<Float32Array> {
  const { sampleRate, minSeconds, maxSeconds } = options
  for (let start = 0; start < samples.length;) {
    const isRest = samples.length - start <= maxSeconds * sampleRate
    const end = isRest
      ? samples.length
      : quietestMoment(samples, start + minSeconds * sampleRate, start + maxSeconds * sampleRate, sampleRate)
    yield samples.subarray(start, end)
    start = end
  }
}

/** The middle of the quietest tenth of a second. */
function quietestMoment(samples: Float32Array, from: number, to: number, sampleRate: number): number {
  const frame = Math.round(FRAME_SECONDS * sampleRate)
  let quietest = { at: to, energy: Infinity }
  for (let start = from; start + frame <= to; start += frame) {
    let energy = 0
    for (let index = start; index < start + frame; index++) energy += (samples[index] ?? 0) ** 2
    // The latest of equally quiet ones makes the longest window.
    if (energy <= quietest.energy) quietest = { at: start + Math.floor(frame / 2), energy }
  }
  return quietest.at
}
