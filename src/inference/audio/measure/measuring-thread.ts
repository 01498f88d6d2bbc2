import { parentPort, workerData } from 'node:worker_threads'
import type { AudioFormat } from './audio-format.ts'
import type { MeasuringMessage, MeasuringTask } from './measure.ts'
import type { ReadBytes } from './untrimmed.ts'

/** In a worker thread: measures the recording that the thread was started for, requesting its bytes as needed. */
export async function measureHere(
  secondsOf: (format: AudioFormat, length: number, read: ReadBytes) => Promise<number>,
): Promise<void> {
  const { format, length } = workerData as MeasuringTask
  const answer = await secondsOf(format, length, read).then(
    (seconds): MeasuringMessage => ({ seconds }),
    (): MeasuringMessage => ({ seconds: undefined }),
  )
  parentPort?.postMessage(answer)
}

function read(position: number, bytes: number): Promise<Buffer> {
  const { promise, resolve } = Promise.withResolvers<Buffer>()
  parentPort?.once('message', (piece: Uint8Array) => resolve(Buffer.from(piece.buffer, piece.byteOffset, piece.length)))
  parentPort?.postMessage({ position, bytes } satisfies MeasuringMessage)
  return promise
}
