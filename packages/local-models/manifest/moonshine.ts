import { hubFile, MEGABYTE, npmPackages, wheels } from './parts.ts'
import type { ManifestModel } from '../contract.ts'

const moonshinePackage = {
  package: '@moonshine-ai/moonshine-js',
  version: '0.1.29',
  integrity: 'Gx1B3mJcbM68ihSy/LyJEuEkGq7sYMqTb04zNdcIeidU0URVlSmXP0GyiQOTTAqDZQXlIC7k+bky+FdXk0UPlg==',
}

export const moonshineTiny: ManifestModel = {
  catalog: {
    id: 'usefulsensors/moonshine-tiny',
    aliases: ['moonshine-tiny'],
    name: 'Moonshine tiny (q8)',
    description:
      'English speech to text, about twice as fast as whisper-tiny. Segments end at pauses. It knows no other language, ' +
      'does not translate, and takes no prompt.',
    categories: ['audio'],
    context_length: 448,
    max_completion_tokens: 224,
    supported_parameters: ['language', 'response_format', 'temperature', 'timestamp_granularities'],
    pricing: { per_audio_minute: '0.001' },
  },
  runtime: 'onnx',
  loader: 'moonshine',
  license: 'MIT',
  delivery: 'default',
  memoryBytes: 150 * MEGABYTE,
  files: [
    {
      role: 'tokenizer',
      path: 'moonshine-tiny/tokenizer.json',
      bytes: 1_985_533,
      sha256: 'b68b995a58b3373db6c4f46864a9db50cd1333d086150ffa2c1096581ede9c10',
      sources: [
        wheels({
          package: 'useful-moonshine-onnx',
          version: '20251121',
          wheel: 'useful_moonshine_onnx-20251121-py3-none-any.whl',
          wheelSha256: 'b4189b0d7dc8064d567fd0b5d5ce78634be290b0a3a3274ab80ad11c46d531a2',
          path: 'moonshine_onnx/assets/tokenizer.json',
        }),
        hubFile('UsefulSensors/moonshine-tiny', 'tokenizer.json'),
      ],
    },
    {
      role: 'encoder',
      path: 'moonshine-tiny/encoder_model.onnx',
      bytes: 7_937_661,
      sha256: 'c6fc4b7bc5af75c0591fd157a1f3829b533d18e9769a888fd95a62e470dd4f4a',
      sources: [npmPackages({ ...moonshinePackage, path: 'package/dist/model/tiny/quantized/encoder_model.onnx' })],
    },
    {
      role: 'decoder',
      path: 'moonshine-tiny/decoder_model_merged.onnx',
      bytes: 20_243_286,
      sha256: 'eed87831c3a6103534aae7d47a5d485025c659a1323901513961c39fe8a1a367',
      sources: [
        npmPackages({ ...moonshinePackage, path: 'package/dist/model/tiny/quantized/decoder_model_merged.onnx' }),
      ],
    },
  ],
}
