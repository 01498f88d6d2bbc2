import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { getLlama } from 'node-llama-cpp'
import { Client } from 'undici'
import { findModel } from '../src/embedded/manifest.ts'
import { modelFiles } from '../src/embedded/model-files.ts'
import { modelPaths } from '../src/embedded/model-paths.ts'
import { engineSupervisor } from '../src/embedded/supervisor.ts'

/** The default chat model through the engine host against node-llama-cpp called directly, turn about, in one run. */
const slug = 'tinyllama/tinyllama-1.1b-chat'
const modelsDirectory = process.env['WEIR_MODEL_CACHE'] ?? 'data/models'
const threads = Number(process.argv[3] ?? availableParallelism())
const rounds = Number(process.argv[2] ?? 5)
const answerTokens = Number(process.argv[4] ?? 48)
const question = 'Tell me about the history of the city of Vienna.'

interface Measure {
  firstTokenMs: number
  tokensPerSecond: number
}

const model = findModel(slug)
if (!model) throw new Error(`no model ${slug}`)
await modelFiles(modelsDirectory, { environment: process.env }).pull(slug)

const llama = await getLlama({ build: 'never', maxThreads: threads })
const weights = await llama.loadModel({ modelPath: modelPaths(modelsDirectory).ofRole(model, 'model') })
const context = await weights.createContext({ contextSize: 2048, sequences: 4, threads })
const sequence = context.getSequence()

async function direct(): Promise<Measure> {
  await sequence.clearHistory()
  const tokens = weights.tokenize(`<s><|user|>\n${question}</s>\n<|assistant|>\n`, true)
  return measure(counted(sequence.evaluate(tokens, { temperature: 0 })))
}

const socketDirectory = await mkdtemp(join(tmpdir(), 'weir-bench-'))
const supervisor = engineSupervisor({ socketDirectory, modelsDirectory, threads, log: () => {} })
const client = new Client('http://engine', { socketPath: await supervisor.socket('llama') })
const residentMegabytes = () => {
  const status = readFileSync(`/proc/${supervisor.status().llama.pid}/status`, 'utf8')
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024)
}
const idleMegabytes = residentMegabytes()

async function throughHost(): Promise<Measure> {
  // A seed has the prompt evaluated afresh, as the direct run does.
  const body = JSON.stringify({
    model: slug,
    messages: [{ role: 'user', content: question }],
    temperature: 0,
    seed: 1,
    max_tokens: answerTokens,
    stream: true,
    stream_options: { continuous_usage_stats: true },
  })
  return measure(contentEvents(body))
}

/** Running counts of the tokens written: a token may have no text of its own, so events would count too few. */
async function* contentEvents(body: string): AsyncGenerator<number> {
  const response = await client.request({ method: 'POST', path: '/v1/chat/completions', body })
  for await (const chunk of response.body as AsyncIterable<Buffer>) {
    const counts = [...chunk.toString('utf8').matchAll(/"completion_tokens":(\d+)/g)].map((match) => Number(match[1]))
    const latest = Math.max(0, ...counts)
    if (latest > 0) yield latest
  }
}

async function* counted(tokens: AsyncIterable<unknown>): AsyncGenerator<number> {
  let count = 0
  for await (const token of tokens) if (token !== undefined) yield ++count
}

async function measure(counts: AsyncIterable<number>): Promise<Measure> {
  const started = performance.now()
  let first: { at: number; count: number } | undefined
  let last = { at: started, count: 0 }
  for await (const count of counts) {
    last = { at: performance.now(), count }
    first ??= last
    if (count >= answerTokens) break
  }
  if (!first) throw new Error('nothing was written')
  return {
    firstTokenMs: first.at - started,
    tokensPerSecond: (1000 * (last.count - first.count)) / (last.at - first.at),
  }
}

await direct()
await throughHost()
const results: Record<'direct' | 'host', Measure[]> = { direct: [], host: [] }
for (let round = 0; round < rounds; round++) {
  const turns = [async () => results.direct.push(await direct()), async () => results.host.push(await throughHost())]
  // Whatever slows the machine for a while should not always meet the same one.
  for (const turn of round % 2 === 0 ? turns : turns.toReversed()) await turn()
}
/** The median, and between what: other programs slow llama.cpp more than anything that is measured here. */
const spread = (values: number[], digits: number) => {
  const sorted = values.toSorted((a, b) => a - b).map((value) => value.toFixed(digits))
  return `${sorted[Math.floor(sorted.length / 2)]} (${sorted[0]}–${sorted.at(-1)})`
}
console.log(`${slug}, ${threads} threads, median of ${rounds}`)
for (const [name, measures] of Object.entries(results)) {
  const first = measures.map((one) => one.firstTokenMs)
  const speed = measures.map((one) => one.tokensPerSecond)
  console.log(`${name.padEnd(8)} first token ${spread(first, 0)} ms   ${spread(speed, 2)} tokens/s`)
}
console.log(`host resident: ${idleMegabytes} MiB idle, ${residentMegabytes()} MiB with the model`)
await client.close()
await supervisor.stop()
await llama.dispose()
await rm(socketDirectory, { recursive: true, force: true })
