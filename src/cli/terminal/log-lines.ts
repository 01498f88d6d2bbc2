import { sydneyTime } from '../../shared/money/sydney-time.ts'
import { durationText, usageText } from './amounts.ts'
import type { Screen } from './screen.ts'
import type { Paint, Tone } from './view.ts'

/** A line of the log, as the service writes it in JSON. */
type LogRecord = Readonly<Record<string, unknown>>

/** Shows the log on a terminal: the same lines, short and in colour, above the screen's block. */
export function terminalLog(screen: Screen, paint: Paint): { write(json: string): void; flush(): Promise<void> } {
  return {
    write: (json) => screen.write(`${logLine(JSON.parse(json) as LogRecord, paint)}\n`),
    flush: async () => {},
  }
}

export function logLine(record: LogRecord, paint: Paint): string {
  const { level, time, msg } = record
  const clock = paint('dim', sydneyTime(Date.parse(String(time))).slice(11))
  if (msg === 'request' || msg === 'request failed') return `${clock} ${requestText(record, paint)}`
  const tone = toneOf(Number(level))
  const message = tone ? paint(tone, String(msg)) : String(msg)
  const details = detailsOf(record)
  return `${clock} ${message}${details === '' ? '' : paint('dim', `  ${details}`)}`
}

/** "200 /chat/completions meta/llama-3.1-8b-instruct 12 in, 128 out 1.2 s acme" */
function requestText(record: LogRecord, paint: Paint): string {
  const status = Number(record['status'])
  const text = (name: string): string[] => (typeof record[name] === 'string' ? [record[name]] : [])
  const number = (name: string): number => (typeof record[name] === 'number' ? record[name] : 0)
  const used = usageText({
    inputTokens: number('input_tokens'),
    cachedInputTokens: 0,
    outputTokens: number('output_tokens'),
    images: number('images'),
    audioMs: number('audio_ms'),
  })
  const took = number('queue_wait_ms') + number('duration_ms')
  const { err } = record as { err?: { message?: unknown } }
  const parts = [
    String(record['path']).replace(/^\/api\/v1(?=\/)/, ''),
    ...text('model'),
    ...(used === 'nothing' ? [] : [used]),
    ...(took === 0 ? [] : [durationText(took)]),
    ...text('workspace'),
    ...text('code').map((code) => paint(status < 500 ? 'yellow' : 'red', code)),
    ...(typeof err?.message === 'string' ? [paint('red', err.message)] : []),
    // Useful for finding the cause of a failure; a successful request does not need it.
    ...(status < 500 ? [] : text('request_id').map((id) => paint('dim', id))),
  ]
  return `${paint(statusTone(status), String(status))} ${parts.join(' ')}`
}

function statusTone(status: number): Tone {
  return status < 400 ? 'green' : status < 500 ? 'yellow' : 'red'
}

function toneOf(level: number): Tone | undefined {
  if (level >= 50) return 'red'
  if (level >= 40) return 'yellow'
  return level < 30 ? 'dim' : undefined
}

/** "url=http://127.0.0.1:9000/v1 healthy=false" */
function detailsOf({ level: _level, time: _time, msg: _msg, ...details }: LogRecord): string {
  return Object.entries(details)
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ')
}
