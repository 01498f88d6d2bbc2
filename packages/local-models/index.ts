import { join } from 'node:path'
import type { LocalModelsPackage } from './contract.ts'
import { ggufFacts } from './gguf-facts.ts'
import { findModel, manifest } from './manifest/manifest.ts'
import { modelPaths } from './model-paths.ts'

/** What the gateway loads of this package. The host, with the runtimes, is a program of its own. */
export const localModelsPackage: LocalModelsPackage = {
  manifest,
  findModel,
  modelPaths,
  ggufFacts,
  hostProgram: join(import.meta.dirname, 'host', 'host.ts'),
  runtimeBytes: 185_000_000,
  runtimes: [
    { name: 'llama.cpp (chat models)', load: () => import('node-llama-cpp') },
    { name: 'ONNX (speech, embeddings, images)', load: () => import('onnxruntime-node') },
  ],
}
