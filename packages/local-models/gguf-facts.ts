import type { GgufFacts } from './contract.ts'
import { bytesOf } from './own-model.ts'

/** The value of `pooling_type` for a model that ranks. The others but 0 are embeddings. */
const RANK = 4

/** What a GGUF file says of itself. Of a split model, `path` is the first part. */
export async function ggufFacts(path: string): Promise<GgufFacts> {
  const bytes = bytesOf(path)
  const { GgufInsights, readGgufFileInfo } = await import('node-llama-cpp')
  const info = await readGgufFileInfo(path, { sourceType: 'filesystem', logWarnings: false }).catch((error: Error) => {
    throw new Error(`${path} cannot be read as a GGUF file: ${error.message}`, { cause: error })
  })
  const insights = await GgufInsights.from(info)
  const leastBytes = insights.modelSize + info.totalMetadataSize + (info.totalTensorInfoSize ?? 0)
  if (bytes < leastBytes) {
    throw new Error(
      `${path} is incomplete: there are ${bytes} bytes, and it needs ${leastBytes}. Copy or download it again.`,
    )
  }
  const { pooling_type: pooling, attention } = info.architectureMetadata
  const isEncoder = (pooling ?? 0) !== 0 || attention?.causal === false
  const category = Number(pooling) === RANK ? 'reranker' : isEncoder ? 'embedding' : 'llm'
  return {
    name: info.metadata.general.name,
    category,
    contextTokens: insights.trainContextSize,
    weightBytes: insights.modelSize,
    contextBytes(contextTokens, sequences) {
      // The newer method loads the file in native code, which ends the process if the file is broken.
      // oxlint-disable-next-line typescript/no-deprecated
      const { cpuRam } = insights.estimateContextResourceRequirements({
        contextSize: contextTokens,
        sequences,
        modelGpuLayers: 0,
        isEmbeddingContext: category !== 'llm',
        includeGraphOverhead: false,
      })
      return cpuRam
    },
  }
}
