import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { missing } from './engine-process.ts'
import { describeGeneration } from './generation-suite.ts'
import { llamaWeights } from './llamacpp-process.ts'
import { ollamaModel, ollamaProgram, startOllama } from './ollama-process.ts'

describeGeneration({
  title: "Ollama's server",
  skip: missing(ollamaProgram, llamaWeights),
  kind: 'ollama',
  base: '/v1',
  model: ollamaModel,
  async start() {
    const folder = mkdtempSync(join(tmpdir(), 'weir-ollama-'))
    const server = await startOllama(folder)
    return {
      ...server,
      async stop() {
        await server.stop()
        rmSync(folder, { recursive: true, force: true })
      },
    }
  },
  without: {
    'running count': 'it counts at the end of a stream',
    'context limit': 'it cuts a prompt that is too long, without a word',
    tools: "the model's template has no tools",
  },
})
