import { availableParallelism, totalmem } from 'node:os'
import type { ManifestModel } from '../../packages/local-models/contract.ts'

export interface Machine {
  readonly cores: number
  readonly memoryBytes: number
}

/** A container may have less memory than its machine; 0 means that it is not limited. */
export function thisMachine(): Machine {
  return { cores: availableParallelism(), memoryBytes: Math.min(process.constrainedMemory() || Infinity, totalmem()) }
}

/** How the engine hosts are set up on this machine. */
export interface EngineLimits {
  readonly threads: number
  readonly parallelRequests: number
  readonly memoryBudgetBytes: number
}

/** The four admission controls of one model, with the names of `weir.yaml`. */
export interface AdmissionLimits {
  readonly token_budget: number
  readonly max_concurrent_requests: number
  readonly max_queue_depth: number
  readonly max_wait_ms: number
}

const MAX_THREADS = 16
/** With more, each answer would be slower than reading speed. */
const MAX_PARALLEL_REQUESTS = 8
const QUEUE_PER_REQUEST = 16
const MAX_WAIT_MS = 120_000

/** The largest request of each kind, as the service admits it. */
const MAX_IMAGES = 10
const TOKENS_PER_IMAGE = 1000
const maxTexts: Readonly<Partial<Record<string, number>>> = { embedding: 2048, reranker: 1000 }

/** Half of the memory is for loaded models. The rest is for the service, the page cache and other programs. */
export function engineLimits({ cores, memoryBytes }: Machine): EngineLimits {
  return {
    threads: Math.max(1, Math.min(MAX_THREADS, cores)),
    parallelRequests: Math.max(2, Math.min(MAX_PARALLEL_REQUESTS, 2 * cores)),
    memoryBudgetBytes: Math.floor(memoryBytes / 2),
  }
}

/**
 * Chat models batch, so they accept as many concurrent requests as they have sequences. The others compute each request
 * with all cores: a second concurrent request only fills the gaps.
 */
export function admissionLimits(model: ManifestModel, machine: Machine): AdmissionLimits {
  const concurrent = model.loader === 'gguf-chat' ? engineLimits(machine).parallelRequests : 2
  return {
    token_budget: concurrent * Math.max(model.catalog.context_length, largestRequestTokens(model)),
    max_concurrent_requests: concurrent,
    max_queue_depth: QUEUE_PER_REQUEST * concurrent,
    max_wait_ms: MAX_WAIT_MS,
  }
}

/** Admission counts all texts of a request together, and each image at a fixed number of tokens. */
function largestRequestTokens({ catalog }: ManifestModel): number {
  if (catalog.categories.includes('image')) return catalog.context_length + MAX_IMAGES * TOKENS_PER_IMAGE
  const texts = Math.max(...catalog.categories.map((category) => maxTexts[category] ?? 1))
  return texts * catalog.context_length
}
