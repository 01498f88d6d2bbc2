import { languageName } from '../../core/language-names.ts'
import type { SpeechOutput } from '../../dialects/dialect.ts'
import type { Segment, TranscriptFormat, Word } from './schema.ts'

/** A transcript in every format that callers know, made from what the engine heard. */
export interface Transcript {
  readonly task: 'transcribe' | 'translate'
  /** The English name, in small letters. */
  readonly language: string
  readonly durationMs: number
  readonly text: string
  readonly segments: readonly Segment[]
  /** Only where they were asked for. */
  readonly words: readonly Word[] | undefined
}

export interface HeardSpeech {
  readonly task: Transcript['task']
  readonly durationMs: number
  /** As the caller told it. */
  readonly language: string | undefined
  readonly temperature: number | undefined
  readonly words: boolean
}

/** An engine that told only the text has it said in one segment from beginning to end. */
export function toTranscript(output: SpeechOutput, heard: HeardSpeech): Transcript {
  const text = output.text.trim()
  const seconds = heard.durationMs / 1000
  const temperature = heard.temperature ?? 0
  const whole = text === '' ? [] : [{ start: 0, end: seconds, text }]
  const segments = output.segments ?? whole
  return {
    task: heard.task,
    language: heard.task === 'translate' ? 'english' : languageName(output.language ?? heard.language ?? 'unknown'),
    durationMs: heard.durationMs,
    text,
    segments: segments.map((segment, index) => toSegment(segment, index, temperature)),
    words: heard.words ? (output.words ?? []).map(toWord) : undefined,
  }
}

export function renderTranscript(transcript: Transcript, format: TranscriptFormat): string {
  const { task, language, durationMs, text, segments, words } = transcript
  const seconds = durationMs / 1000
  switch (format) {
    case 'json':
      return JSON.stringify({ text, usage: { type: 'duration', seconds } })
    case 'verbose_json':
      return JSON.stringify({ task, language, duration: seconds, text, segments, ...(words ? { words } : {}) })
    case 'text':
      return `${text}\n`
    case 'srt':
      return segments.map((it, index) => `${index + 1}\n${cue(it, ',')}\n${line(it.text)}\n\n`).join('')
    case 'vtt':
      return `WEBVTT\n\n${segments.map((it) => `${cue(it, '.')}\n${escaped(line(it.text))}\n\n`).join('')}`
  }
}

export function transcriptType(format: TranscriptFormat): string {
  switch (format) {
    case 'json':
    case 'verbose_json':
      return 'application/json'
    case 'text':
    case 'srt':
      return 'text/plain; charset=utf-8'
    case 'vtt':
      return 'text/vtt; charset=utf-8'
  }
}

function toSegment(segment: Readonly<Record<string, unknown>>, index: number, temperature: number): Segment {
  const { start, end } = span(segment)
  return {
    id: index,
    seek: Math.round(number(segment['seek'], 0)),
    start,
    end,
    text: typeof segment['text'] === 'string' ? segment['text'] : '',
    tokens: Array.isArray(segment['tokens']) ? segment['tokens'].filter((it) => Number.isInteger(it)) : [],
    temperature: number(segment['temperature'], temperature),
    avg_logprob: number(segment['avg_logprob'], 0),
    compression_ratio: number(segment['compression_ratio'], 1),
    no_speech_prob: number(segment['no_speech_prob'], 0),
  }
}

function toWord(word: Readonly<Record<string, unknown>>): Word {
  return { word: typeof word['word'] === 'string' ? word['word'].trim() : '', ...span(word) }
}

function span(timed: Readonly<Record<string, unknown>>): { start: number; end: number } {
  const start = Math.max(0, number(timed['start'], 0))
  return { start, end: Math.max(start, number(timed['end'], start)) }
}

function number(value: unknown, otherwise: number): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : otherwise
}

/** 00:01:02,500 --> 00:01:04,000 */
function cue({ start, end }: Segment, point: ',' | '.'): string {
  return `${clock(start, point)} --> ${clock(end, point)}`
}

function clock(seconds: number, point: string): string {
  const ms = Math.round(seconds * 1000)
  const pad = (value: number, digits = 2): string => String(Math.floor(value)).padStart(digits, '0')
  return `${pad(ms / 3_600_000)}:${pad((ms / 60_000) % 60)}:${pad((ms / 1000) % 60)}${point}${pad(ms % 1000, 3)}`
}

/** An empty line would end a cue, and an arrow begin one. */
function line(text: string): string {
  return text
    .trim()
    .replaceAll(/\s*[\r\n]+\s*/g, '\n')
    .replaceAll('-->', '->')
}

/** WebVTT has markup. */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
