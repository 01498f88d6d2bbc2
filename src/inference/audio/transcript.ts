import { languageName } from '../../shared/language-names.ts'
import type { SpeechOutput } from '../../engines/dialects/dialect.ts'
import type { TranscriptFormat, TranscriptSegment, TranscriptWord } from './schema.ts'

/** Everything needed to write a transcript in any of the formats. */
interface Transcript {
  readonly task: 'transcribe' | 'translate'
  /** The English name, in lower case. */
  readonly language: string
  readonly durationMs: number
  readonly text: string
  readonly segments: readonly TranscriptSegment[]
  /** undefined unless the caller asked for them. */
  readonly words: readonly TranscriptWord[] | undefined
}

export interface TranscriptOptions {
  readonly task: Transcript['task']
  readonly durationMs: number
  /** The language the caller gave. */
  readonly language: string | undefined
  readonly temperature: number | undefined
  readonly words: boolean
}

/** When the engine returns only text, the whole recording becomes one segment. */
export function toTranscript(output: SpeechOutput, options: TranscriptOptions): Transcript {
  const text = output.text.trim()
  const seconds = options.durationMs / 1000
  const temperature = options.temperature ?? 0
  const whole = text === '' ? [] : [{ start: 0, end: seconds, text }]
  const segments = output.segments ?? whole
  return {
    task: options.task,
    language: options.task === 'translate' ? 'english' : languageName(output.language ?? options.language ?? 'unknown'),
    durationMs: options.durationMs,
    text,
    segments: segments.map((segment, index) => toSegment(segment, index, temperature)),
    words: options.words ? (output.words ?? []).map(toWord) : undefined,
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
      return `WEBVTT\n\n${segments.map((it) => `${cue(it, '.')}\n${escapeMarkup(line(it.text))}\n\n`).join('')}`
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

function toSegment(segment: Readonly<Record<string, unknown>>, index: number, temperature: number): TranscriptSegment {
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

function toWord(word: Readonly<Record<string, unknown>>): TranscriptWord {
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
function cue({ start, end }: TranscriptSegment, point: ',' | '.'): string {
  return `${clock(start, point)} --> ${clock(end, point)}`
}

function clock(seconds: number, point: string): string {
  const ms = Math.round(seconds * 1000)
  const pad = (value: number, digits = 2): string => String(Math.floor(value)).padStart(digits, '0')
  return `${pad(ms / 3_600_000)}:${pad((ms / 60_000) % 60)}:${pad((ms / 1000) % 60)}${point}${pad(ms % 1000, 3)}`
}

/** Removes what has a meaning in a cue: an empty line ends it, and an arrow starts one. */
function line(text: string): string {
  return text
    .split(/[\r\n]/)
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .join('\n')
    .replaceAll('-->', '->')
}

/** WebVTT text can contain markup. */
function escapeMarkup(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
