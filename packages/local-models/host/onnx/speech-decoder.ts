import { Tensor, type InferenceSession } from 'onnxruntime-node'
import { floats, int64, output, run } from './session.ts'

export interface SpeechDecoder {
  /** Feeds tokens and returns the logits of the last position. */
  feed(tokens: readonly number[], signal: AbortSignal): Promise<Float32Array>
}

/**
 * The merged decoder of whisper or moonshine over one window. The self-attention keys grow with every token. Those over the audio are
 * computed in the first pass and only handed on after that.
 */
export function speechDecoder(session: InferenceSession, audio: Tensor): SpeechDecoder {
  const pastNames = session.inputNames.filter((name) => name.startsWith('past_key_values.'))
  const outputNames = ['logits', ...pastNames.map((name) => name.replace('past_key_values', 'present'))]
  let past: Readonly<Record<string, Tensor>> | undefined

  return {
    async feed(tokens, signal) {
      const inputs = {
        input_ids: int64(tokens, [1, tokens.length]),
        encoder_hidden_states: audio,
        use_cache_branch: new Tensor('bool', [past !== undefined], [1]),
        ...(past ?? emptyPast(session, pastNames)),
      }
      const outputs = await run(session, inputs, signal, outputNames)
      const before = past
      past = Object.fromEntries(
        pastNames.map((name) => {
          const kept = name.includes('.encoder.') ? before?.[name] : undefined
          return [name, kept ?? output(outputs, name.replace('past_key_values', 'present'))]
        }),
      )
      const logits = output(outputs, 'logits')
      const vocabulary = logits.dims[2] ?? 0
      const values = floats(logits)
      return values.slice(values.length - vocabulary)
    },
  }
}

function emptyPast(session: InferenceSession, names: readonly string[]): Record<string, Tensor> {
  const shapes = new Map(session.inputMetadata.map((input) => [input.name, input.isTensor ? input.shape : []]))
  return Object.fromEntries(
    names.map((name) => {
      const [, heads, , width] = shapes.get(name) ?? []
      return [name, new Tensor('float32', new Float32Array(), [1, Number(heads), 0, Number(width)])]
    }),
  )
}
