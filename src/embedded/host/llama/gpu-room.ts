import { InsufficientMemoryError } from 'node-llama-cpp'

/** What of a model goes to the GPU: what leaves room there for a context of that size, or no layer at all. */
export type GpuShare = { fitContext: { contextSize: number; embeddingContext: boolean } } | 0

/**
 * Loads with as many layers on the GPU as leave room for the context, or with none when other programs or models have
 * filled it. Left to itself the library fills the GPU with layers, and then finds no room for the sequences.
 */
export async function inGpuRoom<Model>(
  fitContext: { contextSize: number; embeddingContext: boolean },
  load: (share: GpuShare) => Promise<Model>,
  full: () => void,
): Promise<Model> {
  try {
    return await load({ fitContext })
  } catch (error) {
    if (!(error instanceof InsufficientMemoryError)) throw error
    full()
    return load(0)
  }
}
