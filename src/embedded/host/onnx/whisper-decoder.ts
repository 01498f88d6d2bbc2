import { Tensor } from 'onnxruntime-node'
import type { InferenceSession } from 'onnxruntime-node'
import { floats, int64, output, run } from './session.ts'

/** Logits of the last position, or of all positions where more than one token was given. */
export interface DecoderState {
  /** Feeds tokens and gives the logits of the position `at` (default: the last). */
  feed(tokens: readonly number[], signal: AbortSignal, at?: number): Promise<Float32Array>
}

/**
 * One pass of the merged whisper decoder over one window. Self-attention keys grow with every token; those over the audio
 * are computed by the first pass and only passed along after that.
 */
export function whisperDecoder(session: InferenceSession, audio: Tensor): DecoderState {
  const pastNames = session.inputNames.filter((name) => name.startsWith('past_key_values.'))
  const wanted = ['logits', ...pastNames.map((name) => name.replace('past_key_values', 'present'))]
  let past: Record<string, Tensor> | undefined

  return {
    async feed(tokens, signal, at = tokens.length - 1) {
      const inputs = {
        input_ids: int64(tokens, [1, tokens.length]),
        encoder_hidden_states: audio,
        use_cache_branch: new Tensor('bool', [past !== undefined], [1]),
        ...(past ?? emptyPast(session, pastNames)),
      }
      const outputs = await run(session, inputs, signal, wanted)
      const before = past
      past = Object.fromEntries(
        pastNames.map((name) => {
          const kept = name.includes('.encoder.') ? before?.[name] : undefined
          return [name, kept ?? output(outputs, name.replace('past_key_values', 'present'))]
        }),
      )
      const logits = output(outputs, 'logits')
      const vocabulary = logits.dims[2] ?? 0
      return floats(logits).slice(at * vocabulary, (at + 1) * vocabulary)
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
