import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { missing, startEngine, type EngineProcess } from './engine-process.ts'
import { describeGeneration } from './generation-suite.ts'
import { llamaWeights, startLlama } from './llamacpp-process.ts'

const apiKey = 'sk-only-for-tests-4f1b9c27d6e85a30f2c94b7e18d05a63'

/** LiteLLM's proxy in front of llama.cpp's server. */
async function startProxy(): Promise<EngineProcess> {
  const llama = await startLlama()
  const folder = mkdtempSync(join(tmpdir(), 'weir-litellm-'))
  const stopLlama = async (): Promise<void> => {
    await llama.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  const config = join(folder, 'litellm.yaml')
  const parameters = { model: 'openai/smollm2', api_base: `${llama.origin}/v1`, api_key: 'none' }
  writeFileSync(
    config,
    stringify({
      model_list: [{ model_name: 'smollm2', litellm_params: parameters }],
      litellm_settings: { telemetry: false },
      general_settings: { master_key: apiKey },
    }),
  )
  try {
    const proxy = await startEngine({
      program: 'litellm/bin/litellm',
      args: (port) => ['--config', config, '--host', '127.0.0.1', '--port', String(port)],
      // Otherwise it fetches a list of prices.
      environment: () => ({ LITELLM_LOCAL_MODEL_COST_MAP: 'True', DO_NOT_TRACK: '1' }),
      readyPath: '/health/liveliness',
    })
    return {
      origin: proxy.origin,
      async stop() {
        await proxy.stop()
        await stopLlama()
      },
    }
  } catch (error) {
    await stopLlama()
    throw error
  }
}

describeGeneration({
  title: "LiteLLM's proxy",
  skip: missing('litellm/bin/litellm', 'llamacpp/bin/python', llamaWeights),
  kind: 'litellm',
  base: '/v1',
  model: 'smollm2',
  apiKey,
  start: startProxy,
  without: {
    'running count': 'it counts at the end of a stream',
    'count of several': "it hands on llama.cpp's count, which is that of the first choice or prompt",
  },
})
