import { useEffect, useRef, useState } from 'preact/hooks'
import { Field } from '../../shared/form.tsx'
import type { Model } from '../api.ts'
import { RequestFrame, useRequest } from './request.tsx'

/** Turns speech into text: a file or a recording. The transcript follows the player. */
interface Segment {
  readonly start: number
  readonly end: number
  readonly text: string
}

interface Transcript {
  readonly text: string
  readonly segments: readonly Segment[]
}

export function Audio({ model }: { model: Model }) {
  const [file, setFile] = useState<File>()
  const [source, setSource] = useState<string>()
  const [language, setLanguage] = useState('')
  const request = useRequest<Transcript>('/audio/transcriptions')
  useEffect(() => {
    if (!file) return
    const address = URL.createObjectURL(file)
    setSource(address)
    return () => URL.revokeObjectURL(address)
  }, [file])

  const fields: [string, string][] = [
    ['model', model.id],
    // Only such models report when each part was spoken.
    ...(model.supported_parameters.includes('response_format')
      ? ([['response_format', 'verbose_json']] as [string, string][])
      : []),
    ...(language === '' ? [] : ([['language', language]] as [string, string][])),
  ]
  async function submit(): Promise<void> {
    if (!file) return
    const form = new FormData()
    for (const [name, value] of fields) form.append(name, value)
    form.append('file', file, file.name)
    await request.submit({ form }, readTranscript)
  }

  return (
    <RequestFrame
      request={request}
      model={model.id}
      title="Transcribe"
      isReady={file !== undefined}
      submit={submit}
      code={{
        path: '/audio/transcriptions',
        body: { kind: 'form', file: ['file', file?.name ?? 'speech.wav'], fields },
      }}
      fields={
        <>
          <Field label="Recording">
            <input
              name="file"
              type="file"
              accept="audio/*,video/mp4,video/webm"
              onChange={(event) => setFile(event.currentTarget.files?.[0])}
            />
          </Field>
          <Recorder done={setFile} />
          {file === undefined ? null : <p class="small soft wrap">{file.name}</p>}
          {model.supported_parameters.includes('language') ? (
            <Field label="Language" hint="A code such as en. Empty: the model finds out.">
              <input
                name="language"
                value={language}
                maxLength={10}
                spellcheck={false}
                onInput={(event) => setLanguage(event.currentTarget.value.trim())}
              />
            </Field>
          ) : null}
        </>
      }
      show={(transcript) => <TranscriptView transcript={transcript} source={source} name={file?.name ?? 'recording'} />}
    />
  )
}

function Recorder({ done }: { done: (file: File) => void }) {
  const recorder = useRef<MediaRecorder | undefined>(undefined)
  const [isRecording, setRecording] = useState(false)
  const [problem, setProblem] = useState<string>()
  useEffect(() => () => recorder.current?.stream.getTracks().forEach((track) => track.stop()), [])

  async function start(): Promise<void> {
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ audio: true })
      const current = new MediaRecorder(stream)
      const pieces: Blob[] = []
      current.addEventListener('dataavailable', ({ data }) => pieces.push(data))
      current.addEventListener('stop', () => {
        for (const track of stream.getTracks()) track.stop()
        const kind = current.mimeType.split(';')[0] ?? 'audio/webm'
        done(new File(pieces, `recording.${kind.split('/')[1] ?? 'webm'}`, { type: kind }))
      })
      current.start()
      recorder.current = current
      setProblem(undefined)
      setRecording(true)
    } catch {
      setProblem('The microphone cannot be used. Allow it for this page, or choose a file.')
    }
  }

  function stop(): void {
    recorder.current?.stop()
    setRecording(false)
  }

  return (
    <div class="row">
      <button type="button" aria-pressed={isRecording} onClick={() => (isRecording ? stop() : void start())}>
        {isRecording ? 'Stop recording' : 'Record'}
      </button>
      <span class="small soft" role="status">
        {problem ?? (isRecording ? 'Recording …' : '')}
      </span>
    </div>
  )
}

function TranscriptView({
  transcript,
  source,
  name,
}: {
  transcript: Transcript
  source: string | undefined
  name: string
}) {
  const player = useRef<HTMLAudioElement>(null)
  const [at, setAt] = useState(0)
  const seek = (time: number): void => {
    if (player.current) player.current.currentTime = time
    void player.current?.play()
  }
  return (
    <>
      {source === undefined ? null : (
        <audio
          ref={player}
          controls
          src={source}
          aria-label={`Player of ${name}`}
          onTimeUpdate={(event) => setAt(event.currentTarget.currentTime)}
        />
      )}
      {transcript.segments.length === 0 ? (
        <p class="answer-text">{transcript.text === '' ? 'No speech was found.' : transcript.text}</p>
      ) : (
        <p class="transcript">
          {transcript.segments.map(({ start, end, text }) => (
            <button
              key={start}
              type="button"
              class="plain"
              aria-current={at >= start && at < end ? 'true' : undefined}
              onClick={() => seek(start)}
            >
              {text.trim()}
            </button>
          ))}
        </p>
      )}
      {transcript.segments.length === 0 ? null : (
        <div class="row">
          <a
            class="button"
            download={`${name}.vtt`}
            href={`data:text/vtt;charset=utf-8,${encodeURIComponent(subtitles(transcript.segments))}`}
          >
            Subtitles
          </a>
        </div>
      )}
    </>
  )
}

async function readTranscript(response: Response): Promise<Transcript> {
  const { text = '', segments = [] } = (await response.json()) as Partial<Transcript>
  return { text, segments }
}

export function subtitles(segments: readonly Segment[]): string {
  const lines = segments.map(({ start, end, text }) => `${clock(start)} --> ${clock(end)}\n${text.trim()}\n`)
  return `WEBVTT\n\n${lines.join('\n')}`
}

function clock(seconds: number): string {
  return new Date(Math.max(0, seconds) * 1000).toISOString().slice(11, 23)
}
