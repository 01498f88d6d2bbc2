import { parentPort, workerData } from 'node:worker_threads'
import type { MeasuringMessage, MeasuringTask } from './measure.ts'
import { claimedSeconds, decodedSeconds } from './measuring.ts'

/** A worker thread: measures one recording, requesting its bytes as needed. */

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

const { way, format, length } = workerData as MeasuringTask
const answer = await (way === 'decode' ? decodedSeconds : claimedSeconds)(format, length, read).then(
  (seconds): MeasuringMessage => ({ seconds }),
  (): MeasuringMessage => ({ seconds: undefined }),
)
parentPort?.postMessage(answer)

function read(position: number, bytes: number): Promise<Buffer> {
  samples = 0
  const { promise, resolve } = Promise.withResolvers<Buffer>()
  parentPort?.once('message', (piece: Uint8Array) => resolve(Buffer.from(piece.buffer, piece.byteOffset, piece.length)))
  parentPort?.postMessage({ position, bytes } satisfies MeasuringMessage)
  return promise
}
