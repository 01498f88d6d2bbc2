/**
 * An inference server as far as a balancer can tell: it batches, computes the part of a prompt that its cache lacks,
 * then one token of every answer in each step. The cache holds chunks of prompts and answers, and drops the one used
 * longest ago. Times are in milliseconds; the figures are those of a model of 8 billion parameters on one large GPU.
 */
export interface SimulatedEngine {
  readonly cache: ChunkCache
  /** All requests that are here, running or waiting. */
  inFlight: number
  add(request: EngineWork): void
  /** When the step that is running ends; undefined: there is nothing to do. */
  readonly stepEndsAt: number | undefined
  /** Ends the step that is running, and begins the next one. */
  step(): void
  /** Starts the next step if none is running. */
  wake(now: number): void
}

export interface EngineWork {
  readonly tokens: number
  /** The chunks of the prompt, and those of the prompt with its answer. */
  readonly chunks: readonly number[]
  readonly chunksAfter: readonly number[]
  readonly output: number
  cached(tokens: number): void
  firstToken(at: number): void
  done(at: number): void
}

export const CHUNK_TOKENS = 64
const STEP_MS = 8
const MS_PER_PROMPT_TOKEN = 0.1
const MS_PER_SEQUENCE = 0.1
const PROMPT_TOKENS_PER_STEP = 2048
const MAX_BATCH = 64

interface ChunkCache {
  /** How many chunks from the beginning are here. */
  depth(chunks: readonly number[]): number
  use(chunks: readonly number[]): void
}

function chunkCache(capacity: number): ChunkCache {
  const used = new Set<number>()
  return {
    depth(chunks) {
      let depth = 0
      while (depth < chunks.length && used.has(chunks[depth]!)) depth++
      return depth
    },
    use(chunks) {
      for (let index = chunks.length - 1; index >= 0; index--) {
        used.delete(chunks[index]!)
        used.add(chunks[index]!)
      }
      for (const chunk of used) {
        if (used.size <= capacity) break
        used.delete(chunk)
      }
    },
  }
}

interface Running {
  readonly work: EngineWork
  promptLeft: number
  outputLeft: number
}

export function simulatedEngine(cacheTokens: number): SimulatedEngine {
  const cache = chunkCache(cacheTokens / CHUNK_TOKENS)
  const waiting: EngineWork[] = []
  let running: Running[] = []
  let stepEndsAt: number | undefined
  let prefilled: Running[] = []

  /** Computes as much of a prompt as the step has room for. As in vLLM, others can use what is being computed. */
  function prefill(it: Running, budget: number): number {
    const taken = Math.min(budget, it.promptLeft)
    it.promptLeft -= taken
    if (it.promptLeft > 0) return taken
    cache.use(it.work.chunks)
    prefilled.push(it)
    return taken
  }

  function begin(now: number): void {
    let budget = PROMPT_TOKENS_PER_STEP
    let decoding = 0
    prefilled = []
    for (const it of running) {
      if (it.promptLeft === 0) decoding++
      else if (budget > 0) budget -= prefill(it, budget)
    }
    while (running.length < MAX_BATCH && waiting.length > 0 && budget > 0) {
      const work = waiting.shift()!
      const depth = Math.min(cache.depth(work.chunks), Math.ceil(work.tokens / CHUNK_TOKENS) - 1)
      cache.use(work.chunks.slice(0, depth))
      work.cached(depth * CHUNK_TOKENS)
      const it = { work, promptLeft: work.tokens - depth * CHUNK_TOKENS, outputLeft: work.output }
      running.push(it)
      budget -= prefill(it, budget)
    }
    const prompt = PROMPT_TOKENS_PER_STEP - budget
    stepEndsAt =
      running.length === 0 ? undefined : now + STEP_MS + prompt * MS_PER_PROMPT_TOKEN + decoding * MS_PER_SEQUENCE
  }

  const engine: SimulatedEngine = {
    cache,
    inFlight: 0,
    add(work) {
      engine.inFlight++
      waiting.push(work)
    },
    get stepEndsAt() {
      return stepEndsAt
    },
    step() {
      const now = stepEndsAt!
      for (const { work } of prefilled) work.firstToken(now)
      const left: Running[] = []
      const over: Running[] = []
      for (const it of running) {
        if (it.promptLeft === 0) it.outputLeft--
        if (it.promptLeft === 0 && it.outputLeft <= 0) over.push(it)
        else left.push(it)
      }
      running = left
      for (const { work } of over) {
        engine.inFlight--
        cache.use(work.chunksAfter)
        work.done(now)
      }
      begin(now)
    },
    wake(now) {
      if (stepEndsAt === undefined) begin(now)
    },
  }
  return engine
}
