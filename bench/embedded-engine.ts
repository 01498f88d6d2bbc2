import { availableParallelism } from 'node:os'
import { getLlama } from 'node-llama-cpp'
import { Client } from 'undici'
import { defaultCatalog } from '../src/local-models/default-catalog.ts'
import { findModel } from '../packages/local-models/manifest/manifest.ts'
import { figure } from './figures.ts'
import { modelFiles } from '../src/local-models/files/model-files.ts'
import { modelPaths } from '../packages/local-models/model-paths.ts'
import { startWeir } from './weir-process.ts'

/** The default chat model through the service, compared with node-llama-cpp called directly, in turns. */
const slug = 'huggingfacetb/smollm2-135m-instruct'
const modelsDirectory = process.env['WEIR_MODEL_CACHE'] ?? 'data/models'
const threads = availableParallelism()
const rounds = Number(process.argv[2] ?? 21)
const answerTokens = Number(process.argv[3] ?? 48)
/** The model's own template adds this to a conversation without a system message. */
const system = 'You are a helpful AI assistant named SmolLM, trained by Hugging Face'
const question = 'Tell me about the history of the city of Vienna.'
const turn = (role: string, content: string): string => `<|im_start|>${role}\n${content}<|im_end|>\n`
const prompt = `${turn('system', system)}${turn('user', question)}<|im_start|>assistant\n`

interface Measure {
  readonly firstTokenMs: number
  readonly tokensPerSecond: number
}

/** How many tokens have been written at a moment. */
interface Progress {
  readonly at: number
  readonly tokens: number
}

const model = findModel(slug)
if (!model) throw new Error(`no model ${slug}`)
await modelFiles(modelsDirectory, { environment: process.env }).pull(slug)

const llama = await getLlama({ gpu: false, build: 'never', maxThreads: threads })
const weights = await llama.loadModel({ modelPath: modelPaths(modelsDirectory).ofRole(model, 'model') })
const context = await weights.createContext({ contextSize: 2048, sequences: 4, threads })
const sequence = context.getSequence()

async function* direct(): AsyncGenerator<Progress> {
  await sequence.clearHistory()
  const tokens = weights.tokenize(prompt, true)
  let count = 0
  for await (const token of sequence.evaluate(tokens, { temperature: 0 })) {
    if (token !== undefined) yield { at: performance.now(), tokens: ++count }
    if (count === answerTokens) break
  }
}

const weir = await startWeir(JSON.parse(defaultCatalog(modelsDirectory)) as object, { modelsDirectory })
const client = new Client(weir.origin)

async function* throughWeir(): AsyncGenerator<Progress> {
  const body = JSON.stringify({
    model: slug,
    messages: [{ role: 'user', content: question }],
    temperature: 0,
    // With a seed the prompt is evaluated from the start, as in the direct run.
    seed: 1,
    max_tokens: answerTokens,
    stream: true,
    stream_options: { include_usage: true },
  })
  const headers = { authorization: `Bearer ${weir.key}`, 'content-type': 'application/json' }
  const response = await client.request({ method: 'POST', path: '/api/v1/chat/completions', headers, body })
  let last = 0
  for await (const chunk of response.body as AsyncIterable<Buffer>) {
    const text = chunk.toString('utf8')
    if (/"content":"[^"]/.test(text)) {
      last = performance.now()
      yield { at: last, tokens: 1 }
    }
    // A token may have no text of its own, so counting events would count too few.
    const counted = /"completion_tokens":(\d+)/.exec(text)?.[1]
    if (counted !== undefined) yield { at: last, tokens: Number(counted) }
  }
}

async function measure(run: () => AsyncIterable<Progress>): Promise<Measure> {
  const started = performance.now()
  let first: Progress | undefined
  let last: Progress | undefined
  for await (const progress of run()) {
    first ??= progress
    last = progress
  }
  if (!first || !last) throw new Error('nothing was written')
  return {
    firstTokenMs: first.at - started,
    tokensPerSecond: (1000 * (last.tokens - first.tokens)) / (last.at - first.at),
  }
}

const ways = { direct, Weir: throughWeir }
const results: Record<keyof typeof ways, Measure[]> = { direct: [], Weir: [] }
for (const run of Object.values(ways)) await measure(run)
for (let round = 0; round < rounds; round++) {
  // Alternates the order, so that a slow moment of the machine does not always hit the same one.
  const names = Object.keys(ways) as (keyof typeof ways)[]
  for (const name of round % 2 === 0 ? names : names.toReversed()) results[name].push(await measure(ways[name]))
}

/** The median and the middle half. Other programs slow llama.cpp down more than anything measured here. */
const spread = (values: readonly number[], digits: number): string => {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number): string => (sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN).toFixed(digits)
  return `${at(0.5)} (${at(0.25)} to ${at(0.75)})`
}
console.log(`${slug}, ${threads} threads, median of ${rounds} (and its middle half)`)
for (const [name, measures] of Object.entries(results)) {
  const first = measures.map((one) => one.firstTokenMs)
  const speed = measures.map((one) => one.tokensPerSecond)
  console.log(`${name.padEnd(8)} first token ${spread(first, 0)} ms   ${spread(speed, 2)} tokens/s`)
}
const rounded = results.Weir.map((weirs, round) => ({ weirs, directs: results.direct[round] ?? weirs }))
const later = rounded.map(({ weirs, directs }) => weirs.firstTokenMs - directs.firstTokenMs)
const share = rounded.map(({ weirs, directs }) => (100 * weirs.tokensPerSecond) / directs.tokensPerSecond)
figure('first token later', { unit: 'ms', digits: 0 }, later)
figure('share of the tokens', { unit: '%', digits: 0 }, share)
console.log(`round by round: first token ${spread(later, 1)} ms later, ${spread(share, 0)} % of the tokens/s`)
await client.close()
await weir.stop()
await llama.dispose()
