import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { engineFile, startEngine, type EngineProcess } from './engine-process.ts'
import { llamaWeights } from './llamacpp-process.ts'

export const ollamaProgram = 'ollama/bin/ollama'
export const ollamaModel = 'smollm2'

/** `folder`: where Ollama keeps its models. */
export function ollamaEnvironment(folder: string, port: number | '${PORT}'): Readonly<Record<string, string>> {
  return {
    OLLAMA_HOST: `127.0.0.1:${port}`,
    OLLAMA_MODELS: folder,
    OLLAMA_CONTEXT_LENGTH: '1024',
    OLLAMA_KEEP_ALIVE: '-1',
    HOME: folder,
  }
}

/** Ollama's server with an empty store, and one model that is made from the weights. */
export async function startOllama(folder: string): Promise<EngineProcess> {
  const server = await startEngine({
    program: ollamaProgram,
    args: () => ['serve'],
    environment: (port) => ollamaEnvironment(folder, port),
    readyPath: '/api/version',
  })
  try {
    await createModel(server.origin)
  } catch (error) {
    await server.stop()
    throw error
  }
  return server
}

async function createModel(origin: string): Promise<void> {
  const bytes = readFileSync(engineFile(llamaWeights))
  const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`
  await post(`${origin}/api/blobs/${digest}`, bytes)
  // One thread: they spin while they wait for each other, which stalls a busy machine.
  const parameters = { num_thread: 1 }
  const order = { model: ollamaModel, files: { 'model.gguf': digest }, parameters, stream: false }
  await post(`${origin}/api/create`, Buffer.from(JSON.stringify(order)))
}

async function post(url: string, body: Buffer<ArrayBuffer>): Promise<void> {
  const response = await fetch(url, { method: 'POST', body })
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`)
}
