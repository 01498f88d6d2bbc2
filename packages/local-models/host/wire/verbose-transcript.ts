import { deflateSync } from 'node:zlib'
import type { RecognizedSpeech, SpeechRequest } from '../runtime/engine-model.ts'

/** Recognized speech in OpenAI's `verbose_json` format. */
export function verboseTranscript(speech: RecognizedSpeech, task: SpeechRequest['task']): object {
  const { language, durationSeconds, temperature, segments } = speech
  return {
    task,
    language,
    duration: durationSeconds,
    text: segments
      .map((segment) => segment.text)
      .join('')
      .trim(),
    segments: segments.map((segment, id) => ({
      id,
      seek: Math.round(segment.startSeconds * 100),
      start: segment.startSeconds,
      end: segment.endSeconds,
      text: segment.text,
      tokens: segment.tokens,
      temperature,
      avg_logprob: segment.averageLogprob,
      compression_ratio: compressionRatio(segment.text),
      no_speech_prob: segment.noSpeechProbability,
    })),
    usage: { type: 'duration', seconds: durationSeconds },
  }
}

function compressionRatio(text: string): number {
  const bytes = Buffer.from(text)
  return bytes.length === 0 ? 0 : bytes.length / deflateSync(bytes).length
}
