import { decodedSeconds } from './decoded-seconds.ts'
import { measureHere } from './measuring-thread.ts'

/** A worker thread: decodes one recording. */

/** The limit on the output of one piece: 16 KiB of silence can become minutes, and a forged header terabytes. */
const MAX_SAMPLES_OF_PIECE = 2 ** 24

let samples = 0
// The memory limits of a worker do not include samples. So too many are refused before they are allocated.
globalThis.Float32Array = new Proxy(Float32Array, {
  construct(target, parameters: readonly unknown[], newTarget) {
    if (typeof parameters[0] === 'number') samples += parameters[0]
    if (samples > MAX_SAMPLES_OF_PIECE) throw new RangeError('too many samples')
    return Reflect.construct(target, parameters, newTarget) as Float32Array
  },
})

await measureHere((format, length, read) =>
  decodedSeconds(format, length, (position, bytes) => {
    samples = 0
    return read(position, bytes)
  }),
)
