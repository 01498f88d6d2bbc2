import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { figure } from './figures.ts'
import { startWeir, type WeirProcess } from './weir-process.ts'

/**
 * Measures the resident memory that uploads of 25 MiB need, one at a time and twenty at once. The kernel records the
 * peak (VmHWM), so that no short peak is missed.
 */
const MIB = 2 ** 20
/** One workspace may have no more recordings waiting to be measured than about this many. */
const CROWD = 20
const ROUNDS = 10

if (process.argv[2] === 'engine') serveEngine()
else await measure()

/** An engine that discards the upload and returns a short answer. */
function serveEngine(): void {
  const server = createServer((incoming, response) => {
    incoming.resume()
    incoming.on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end('{"text":"A weir."}'))
  })
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
}

async function measure(): Promise<void> {
  const engine = fork(new URL(import.meta.url), ['engine'])
  process.once('exit', () => engine.kill())
  const [enginePort] = (await once(engine, 'message')) as [number]
  const weir = await startWeir({ models: [whisper(`http://127.0.0.1:${enginePort}/v1`)] })
  try {
    const { pid } = weir
    const large = silentWav(25 * MIB)

    // Warm up with small uploads, so that compiled code and buffers do not count.
    for (let count = 0; count < 20; count++) await upload(weir, silentWav(64 * 1024))
    await sleep(1000)
    console.log(`Resident after small uploads: ${mebibytes(resident(pid, 'VmRSS'))}`)
    const rounds: number[] = []
    for (let round = 0; round < ROUNDS; round++) rounds.push(await peakIncrease(pid, () => upload(weir, large)))
    const increases = rounds.map((bytes) => bytes / MIB)
    figure('one', { unit: 'MiB', digits: 1 }, increases)
    console.log(`Peak increase of one upload of 25 MiB, ${ROUNDS} times: ${rounds.map(mebibytes).join('  ')}`)
    const crowd = (): Promise<unknown> => Promise.all(Array.from({ length: CROWD }, () => upload(weir, large)))
    for (let round = 0; round < 3; round++) {
      const increase = await peakIncrease(pid, crowd)
      console.log(
        `Peak increase of ${CROWD} at once: ${mebibytes(increase)}; total ${mebibytes(resident(pid, 'VmHWM'))}`,
      )
    }
  } finally {
    await weir.stop()
    engine.kill()
  }
}

/** How far the peak during the work is above the memory before it. */
async function peakIncrease(pid: number, work: () => Promise<unknown>): Promise<number> {
  await sleep(300)
  const before = resident(pid, 'VmRSS')
  // Writing 5 resets VmHWM.
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
  await work()
  return resident(pid, 'VmHWM') - before
}

function whisper(engineUrl: string): object {
  return {
    id: 'bench/whisper',
    categories: ['audio'],
    context_length: 448,
    pricing: { per_audio_minute: '0.006' },
    serverless: {
      engine: { kind: 'openai', urls: [engineUrl], model: 'engine-name' },
      limits: { token_budget: 100_000_000, max_concurrent_requests: 1000 },
    },
  }
}

/** Streams from one shared buffer with backpressure, so that the bench itself needs little memory. */
async function upload({ origin, key }: WeirProcess, file: Buffer): Promise<void> {
  const before =
    '--frontier\r\nContent-Disposition: form-data; name="model"\r\n\r\nbench/whisper\r\n' +
    '--frontier\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
  const after = '\r\n--frontier--\r\n'
  const outgoing = request(`${origin}/api/v1/audio/transcriptions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'multipart/form-data; boundary=frontier',
      'content-length': before.length + file.length + after.length,
    },
  })
  const answered = once(outgoing, 'response')
  await pipeline(function* () {
    yield Buffer.from(before)
    for (let at = 0; at < file.length; at += 65_536) yield file.subarray(at, at + 65_536)
    yield Buffer.from(after)
  }, outgoing)
  const [response] = (await answered) as [import('node:http').IncomingMessage]
  const body = (await response.toArray()).join('')
  if (response.statusCode !== 200) throw new Error(`Weir answered ${response.statusCode}: ${body}`)
}

/** 8 kHz, 8 bits. */
function silentWav(bytes: number): Buffer {
  const file = Buffer.alloc(bytes, 128)
  file.write('RIFF\0\0\0\0WAVEfmt ', 'latin1')
  file.set([16, 0, 0, 0, 1, 0, 1, 0, 0x40, 0x1f, 0, 0, 0x40, 0x1f, 0, 0, 1, 0, 8, 0], 16)
  file.write('data', 36)
  file.writeUInt32LE(bytes - 44, 40)
  return file
}

function resident(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(new RegExp(`${field}:\\s+(\\d+)`).exec(text)?.[1]) * 1024
}

function mebibytes(bytes: number): string {
  return `${(bytes / MIB).toFixed(1)} MiB`
}
