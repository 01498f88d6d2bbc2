import { engineFile, missing, startEngine } from './engine-process.ts'
import { describeGeneration } from './generation-suite.ts'

const weights = 'weights/SmolLM2-135M-Instruct.Q4_1.gguf'
const options =
  '--host 127.0.0.1 --model_alias smollm2 --chat_format chatml-function-calling --n_ctx 1024 --n_threads 1 --n_threads_batch 1 --logits_all true'.split(
    ' ',
  )

describeGeneration({
  title: "llama-cpp-python's server",
  skip: missing('llama-cpp-python/bin/python', weights),
  kind: 'llamacpp_python',
  base: '/v1',
  model: 'smollm2',
  toolChoice: { type: 'function', function: { name: 'get_weather' } },
  start: () =>
    startEngine({
      program: 'llama-cpp-python/bin/python',
      args: (port) => ['-m', 'llama_cpp.server', ...options, '--model', engineFile(weights), '--port', String(port)],
      readyPath: '/v1/models',
    }),
  without: {
    'stream usage': 'its streams have no usage',
    'running count': 'its streams have no usage',
    'json schema': 'it knows json_object only',
  },
})
