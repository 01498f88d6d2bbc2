import type { ManifestModel } from '../manifest/types.ts'

export interface Machine {
  cores: number
  memoryBytes: number
}

/** How the engine hosts are set up on this machine. */
export interface EngineLimits {
  threads: number
  parallelRequests: number
  memoryBudgetBytes: number
}

/** The four admission controls of one model, under the names of `weir.yaml`. */
export interface AdmissionLimits {
  token_budget: number
  max_concurrent_requests: number
  max_queue_depth: number
  max_wait_ms: number
}

/** Beyond so many, a token of each takes too long to read along with. */
const parallelRequestsMax = 8

/** Half the memory is for loaded models; the other half for the service, the page cache and the rest of the machine. */
export function engineLimits({ cores, memoryBytes }: Machine): EngineLimits {
  return {
    threads: Math.max(1, Math.min(16, cores)),
    parallelRequests: Math.max(2, Math.min(parallelRequestsMax, 2 * cores)),
    memoryBudgetBytes: Math.floor(memoryBytes / 2),
  }
}

/**
 * Language models batch, so they take as many at a time as they have sequences. The others compute one request with all
 * cores: a second at the same time only fills the gaps.
 */
export function admissionLimits(model: ManifestModel, machine: Machine): AdmissionLimits {
  const batched = model.loader === 'gguf-chat'
  const concurrent = batched ? engineLimits(machine).parallelRequests : 2
  return {
    token_budget: concurrent * Math.max(model.catalog.context_length, admittedTokens(model)),
    max_concurrent_requests: concurrent,
    max_queue_depth: 16 * concurrent,
    max_wait_ms: 120_000,
  }
}

/** The largest request an endpoint admits counts all its texts, not only the longest, and all its pictures. */
function admittedTokens({ catalog }: ManifestModel): number {
  if (catalog.categories.includes('image')) return catalog.context_length + 10 * 1000
  const textsMax: Partial<Record<string, number>> = { embedding: 2048, reranker: 1000 }
  const texts = Math.max(...catalog.categories.map((category) => textsMax[category] ?? 1))
  return texts * catalog.context_length
}
