import { InsufficientMemoryError } from 'node-llama-cpp'

/** Which layers go to the GPU: as many as leave room for a context of this size, or none. */
export type GpuShare = { readonly fitContext: { readonly contextSize: number; readonly embeddingContext: boolean } } | 0

/**
 * Loads with as many layers on the GPU as leave room for the context, or with none if other programs or models have
 * filled it. By itself the library would fill the GPU with layers and then find no room for the sequences.
 */
export async function inGpuRoom<Model>(
  fitContext: { readonly contextSize: number; readonly embeddingContext: boolean },
  load: (share: GpuShare) => Promise<Model>,
  onFull: () => void,
): Promise<Model> {
  try {
    return await load({ fitContext })
  } catch (error) {
    if (!(error instanceof InsufficientMemoryError)) throw error
    onFull()
    return load(0)
  }
}
