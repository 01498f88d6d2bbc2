import { deflateSync } from 'node:zlib'
import type { SpeechRequest, Transcript } from '../runtime/engine-model.ts'
import { languageName } from './languages.ts'

export function transcriptText(transcript: Transcript): string {
  return transcript.segments
    .map((segment) => segment.text)
    .join('')
    .trim()
}

export function toSrt({ segments }: Transcript): string {
  return segments
    .map((segment, index) => {
      const times = `${timestamp(segment.startSeconds, ',')} --> ${timestamp(segment.endSeconds, ',')}`
      return `${index + 1}\n${times}\n${segment.text.trim()}\n\n`
    })
    .join('')
}

export function toVtt({ segments }: Transcript): string {
  const cues = segments.map((segment) => {
    const times = `${timestamp(segment.startSeconds, '.')} --> ${timestamp(segment.endSeconds, '.')}`
    return `${times}\n${segment.text.trim()}\n\n`
  })
  return `WEBVTT\n\n${cues.join('')}`
}

export function toVerboseJson(transcript: Transcript, task: SpeechRequest['task']): object {
  return {
    task,
    language: languageName(transcript.language) ?? transcript.language,
    duration: transcript.durationSeconds,
    text: transcriptText(transcript),
    segments: transcript.segments.map((segment, id) => ({
      id,
      seek: Math.round(segment.startSeconds * 100),
      start: segment.startSeconds,
      end: segment.endSeconds,
      text: segment.text,
      tokens: segment.tokens,
      temperature: transcript.temperature,
      avg_logprob: segment.averageLogprob,
      compression_ratio: compressionRatio(segment.text),
      no_speech_prob: segment.noSpeechProbability,
    })),
    usage: { type: 'duration', seconds: transcript.durationSeconds },
  }
}

function compressionRatio(text: string): number {
  const bytes = Buffer.from(text)
  return bytes.length === 0 ? 0 : bytes.length / deflateSync(bytes).length
}

function timestamp(seconds: number, separator: string): string {
  const ms = Math.round(seconds * 1000)
  return `${pad(ms / 3_600_000, 2)}:${pad((ms / 60_000) % 60, 2)}:${pad((ms / 1000) % 60, 2)}${separator}${pad(ms % 1000, 3)}`
}

function pad(value: number, digits: number): string {
  return String(Math.floor(value)).padStart(digits, '0')
}
