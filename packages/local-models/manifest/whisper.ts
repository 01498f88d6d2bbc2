import { hubFile, MEGABYTE, npmPackages } from './parts.ts'
import type { ManifestModel, ModelFile } from '../contract.ts'

type Pin = readonly [bytes: number, sha256: string]

/** Where each file is in a repository or package. */
const pathsByRole = {
  generation: 'generation_config.json',
  features: 'preprocessor_config.json',
  tokenizer: 'tokenizer.json',
  encoder: 'onnx/encoder_model_quantized.onnx',
  decoder: 'onnx/decoder_model_merged_quantized.onnx',
}
type Role = keyof typeof pathsByRole

interface WhisperModel {
  readonly size: string
  readonly note: string
  readonly delivery: 'default' | 'pull'
  readonly memoryBytes: number
  readonly perMinute: string
  readonly files: readonly ModelFile[]
}

function whisper({ size, note, delivery, memoryBytes, perMinute, files }: WhisperModel): ManifestModel {
  return {
    catalog: {
      id: `openai/whisper-${size}`,
      aliases: [`whisper-${size}`],
      name: `Whisper ${size} (q8)`,
      description: `Multilingual speech to text, and translation to English, with segment timestamps and language detection. ${note}`,
      categories: ['audio'],
      context_length: 448,
      max_completion_tokens: 224,
      supported_parameters: ['language', 'response_format', 'temperature', 'prompt', 'timestamp_granularities'],
      pricing: { per_audio_minute: perMinute },
    },
    runtime: 'onnx',
    loader: 'whisper',
    license: 'Apache-2.0',
    delivery,
    memoryBytes,
    files,
  }
}

/** These are the same in every size below large. */
const sharedPins = {
  features: [339, 'a6a76d28c93edb273669eb9e0b0636a2bddbb1272c3261e47b7ca6dfdbac1b8d'] as Pin,
  tokenizer: [2_480_466, '27fc476bfe7f17299480be2273fc0608e4d5a99aba2ab5dec5374b4482d1a566'] as Pin,
}

function packaged(
  size: string,
  integrity: string,
  pins: Readonly<Record<'generation' | 'encoder' | 'decoder', Pin>>,
): ModelFile[] {
  return eachFile((role, path) => {
    const [bytes, sha256] = { ...sharedPins, ...pins }[role]
    const member = {
      package: `sts-whisper-${size}`,
      version: '1.0.0',
      integrity,
      path: `package/models/Xenova/whisper-${size}/${path}`,
    }
    return {
      role,
      path: `whisper-${size}/${path}`,
      bytes,
      sha256,
      sources: [npmPackages(member), hubFile(`Xenova/whisper-${size}`, path)],
    }
  })
}

function fromHub(size: string, repository: string, bytes: Readonly<Record<Role, number>>): ModelFile[] {
  return eachFile((role, path) => ({
    role,
    path: `whisper-${size}/${path}`,
    bytes: bytes[role],
    sources: [hubFile(repository, path)],
  }))
}

function eachFile(describe: (role: Role, path: string) => ModelFile): ModelFile[] {
  return (Object.keys(pathsByRole) as Role[]).map((role) => describe(role, pathsByRole[role]))
}

export const whisperModels: readonly ManifestModel[] = [
  whisper({
    size: 'tiny',
    note: 'Fast but rough: give the language with short clips, and translate with a larger model.',
    delivery: 'default',
    memoryBytes: 250 * MEGABYTE,
    perMinute: '0.001',
    files: packaged(
      'tiny',
      'kxDUK4JaVwltNa0zR9RH9gRU033teKgKUInnoiVtkDQFDYywsUb18L6+N183cLX1fVEviPBqJ2dw73eLI7X6VA==',
      {
        generation: [3716, '68ac791fcb4999461a313472125042934656240ba1cba7d1c2627fcbb19ac24c'],
        encoder: [10_124_910, 'fd9d995b9dcb0520f0dbf6cf68651af639fc385f594d9d876e69ca2802dc438e'],
        decoder: [30_727_765, '6c0c125986b007d2e3734bec84c18bda0152071b90b87fadac6d7764499927a0'],
      },
    ),
  }),
  whisper({
    size: 'base',
    note: 'Better than tiny, about half as fast. For translations, small is better.',
    delivery: 'default',
    memoryBytes: 400 * MEGABYTE,
    perMinute: '0.002',
    files: packaged(
      'base',
      'lBXHIZX66KiR4+TMl2zCB4NO/Ih3Vp06l1yDjYtG9rROlLVPq3s7DiBtTRkeFQiDh0Zl3x+OmRuse17Fyjq20w==',
      {
        generation: [3776, '3bba359e33fdd6dc1c10f71846a477d339b0242f462f70ea1dd73274caa38d05'],
        encoder: [23_200_850, '3e345e977b55620a37c0c2b2af0644e019afdfad562dcf71eb929bb7274285f9'],
        decoder: [53_707_539, 'a6beb6baabb66f00b6a686d828c95ffca6146d51900cbad0266cad38f64cf861'],
      },
    ),
  }),
  whisper({
    size: 'small',
    note: 'Good in the larger languages; needs a few cores to keep up with speech.',
    delivery: 'pull',
    memoryBytes: 900 * MEGABYTE,
    perMinute: '0.004',
    files: packaged(
      'small',
      'NoW0Id+PSL22BoV+34HXs0uT0et1Y63Cks/QCosYe0khaGMr6y/fBEup2k1+5fut3jxrZg1k1SrZ0gOpAU/LsQ==',
      {
        generation: [3837, '0b7407a4e53a677f826e03c75d409e6f830663932bf43dda3b08c5efa2223279'],
        encoder: [92_324_809, '969f5ac12974340386bf7a02ea6626003e5e2dee396ffc6ab0eec282bf55ba06'],
        decoder: [156_780_950, 'fcfc6100dc7339e7507e10f8b274350be7c4f8d8b575f0293f94cc0e156d6d24'],
      },
    ),
  }),
  whisper({
    size: 'large-v3-turbo',
    note: 'The best of the family; for machines with many cores.',
    delivery: 'pull',
    memoryBytes: 2500 * MEGABYTE,
    perMinute: '0.006',
    files: fromHub('large-v3-turbo', 'onnx-community/whisper-large-v3-turbo', {
      generation: 4000,
      features: 400,
      tokenizer: 2_500_000,
      encoder: 645 * MEGABYTE,
      decoder: 200 * MEGABYTE,
    }),
  }),
]
