import { fileURLToPath } from 'node:url'
import { engineFile, startEngine, type EngineProcess } from './engine-process.ts'

/** llama.cpp's server with the smallest chat model. */
export const llamaWeights = 'weights/SmolLM2-135M-Instruct.Q4_1.gguf'

export const llamaScript = fileURLToPath(new URL('llamacpp-server.py', import.meta.url))
/** SmolLM2's own template knows no tools. */
const template = fileURLToPath(new URL('qwen3-coder-template.jinja', import.meta.url))

export function startLlama(): Promise<EngineProcess> {
  return startEngine({
    program: 'llamacpp/bin/python',
    args: (port) => [llamaScript, String(port), 'chat', engineFile(llamaWeights), template],
    readyPath: '/health',
  })
}

/** An encoder for embeddings or ranking, at a path of its own. */
export function startLlamaEncoder(use: 'embedding' | 'ranking', path: string): Promise<EngineProcess> {
  return startEngine({
    program: 'llamacpp/bin/python',
    args: (port) => [llamaScript, String(port), use, path],
    readyPath: '/health',
  })
}
