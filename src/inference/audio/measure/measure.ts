import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { CallerLeft } from '../../../shared/errors.ts'
import { takeTurns, type TurnClient } from '../../../shared/turns.ts'
import type { ByteSource, MeasuredAudio } from '../../../server/uploads/uploads.ts'
import { formatOf, type AudioFormat } from './audio-format.ts'

/** A week. Anything longer is a wrong or forged number. */
const MAX_SECONDS = 7 * 24 * 3600
/** Five hours of Opus take about 45 s on one core, and every other format takes less. */
const DECODE_MS = 60_000
const CLAIMS_MS = 10_000
/** The limit on a thread's memory besides samples, which it limits itself. */
const MAX_HEAP_MIB = 256

const turns = takeTurns({
  // The other cores are for requests. Two threads, so that one workspace never holds up the others.
  atOnce: Math.max(2, Math.floor(availableParallelism() / 2)),
  maxWaiting: 256,
  maxWaitingOfOwner: 32,
  full: 'Too many recordings are waiting to be measured. Try again shortly.',
  ownerFull: 'Too many of your recordings are waiting to be measured. Try again when some of them are done.',
})

/** Decodes the recording, or reads its headers. Two programs, because each library takes long to load. */
const programs = {
  decode: new URL('./decoding-worker.ts', import.meta.url),
  claims: new URL('./claims-worker.ts', import.meta.url),
}

/** The task of a thread. */
export interface MeasuringTask {
  readonly format: AudioFormat
  readonly length: number
}

/** A thread asks for bytes until it has the answer. */
export type MeasuringMessage =
  | { readonly position: number; readonly bytes: number }
  | { readonly seconds: number | undefined }

/**
 * The format and length of a recording, from its content and not its name. undefined: not a supported audio format. It
 * is decoded in a thread of its own, so that other requests are not delayed, and its samples are counted.
 */
export async function measureAudio(client: TurnClient, source: ByteSource): Promise<MeasuredAudio | undefined> {
  const format = await formatOf(source)
  if (!format) return undefined
  const { extension, contentType } = format
  const inThreadOf = (program: URL, limitMs: number): Promise<number | undefined> =>
    inThread(program, client, { format, length: source.length }, source, limitMs)
  const { seconds, isClaimed } = await turns.run(client, async () => {
    const decoded = await inThreadOf(programs.decode, DECODE_MS)
    if (decoded !== undefined) return { seconds: decoded, isClaimed: false }
    return { seconds: await inThreadOf(programs.claims, CLAIMS_MS), isClaimed: true }
  })
  const isPlausible = seconds !== undefined && seconds > 0 && seconds <= MAX_SECONDS
  const durationMs = isPlausible ? Math.max(1, Math.round(seconds * 1000)) : undefined
  return { extension, contentType, durationMs, isClaimed }
}

/** undefined: the file cannot be measured this way, or not in time. */
async function inThread(
  program: URL,
  client: TurnClient,
  task: MeasuringTask,
  source: ByteSource,
  limitMs: number,
): Promise<number | undefined> {
  const worker = new Worker(program, {
    workerData: task,
    resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MIB },
    // Captured, because decoders report damage there.
    stdout: true,
    stderr: true,
  })
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>()
  const deadline = setTimeout(() => resolve(undefined), limitMs)
  const forget = client.onGone(() => reject(new CallerLeft()))
  worker.on('message', (message: MeasuringMessage) => {
    if ('seconds' in message) return resolve(message.seconds)
    const bytes = Buffer.allocUnsafeSlow(message.bytes)
    // Transferred, not copied: it may be the whole file.
    const send = (count: number): void => worker.postMessage(bytes.subarray(0, count), [bytes.buffer])
    source.read(bytes, message.position).then(send, reject)
  })
  // Not enough memory, or a decoder that failed.
  worker.once('error', () => resolve(undefined))
  worker.once('exit', () => resolve(undefined))
  try {
    return await promise
  } finally {
    clearTimeout(deadline)
    forget()
    await worker.terminate()
  }
}
