import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { engineFile, missing, startEngine, type EngineProcess } from './engine-process.ts'
import { describeGeneration } from './generation-suite.ts'

const weights = 'weights/SmolLM2-135M-Instruct.Q4_1.gguf'
const model = 'smollm2'

/** A server with an empty store, and one model that is made from the weights. */
async function startOllama(): Promise<EngineProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-ollama-'))
  const server = await startEngine({
    program: 'ollama/bin/ollama',
    args: () => ['serve'],
    environment: (port) => ({
      OLLAMA_HOST: `127.0.0.1:${port}`,
      OLLAMA_MODELS: folder,
      OLLAMA_CONTEXT_LENGTH: '1024',
      OLLAMA_KEEP_ALIVE: '-1',
      HOME: folder,
    }),
    readyPath: '/api/version',
  })
  const stop = async (): Promise<void> => {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    await createModel(server.origin)
  } catch (error) {
    await stop()
    throw error
  }
  return { origin: server.origin, stop }
}

async function createModel(origin: string): Promise<void> {
  const bytes = readFileSync(engineFile(weights))
  const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`
  await post(`${origin}/api/blobs/${digest}`, bytes)
  await post(
    `${origin}/api/create`,
    Buffer.from(JSON.stringify({ model, files: { 'model.gguf': digest }, stream: false })),
  )
}

async function post(url: string, body: Buffer<ArrayBuffer>): Promise<void> {
  const response = await fetch(url, { method: 'POST', body })
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`)
}

describeGeneration({
  title: "Ollama's server",
  skip: missing('ollama/bin/ollama', weights),
  kind: 'ollama',
  base: '/v1',
  model,
  start: startOllama,
  without: {
    'running count': 'it counts at the end of a stream',
    'context limit': 'it cuts a prompt that is too long, without a word',
    tools: "the model's template has no tools",
  },
})
