import { clip } from './audio-stage.ts'
import { marker, type EngineAnswer } from './fuzz/fuzz-engine.ts'
import type { Chance } from './fuzz/chance.ts'
import { png } from './image-samples.ts'

/** One request of the soak: what the caller sends and does, what the engine does, and what the engine counts. */
export interface SoakRequest {
  readonly path: string
  readonly contentType: string
  readonly body: Buffer<ArrayBuffer>
  readonly answer: EngineAnswer
  /** The engine's own truth, if it answers completely. */
  readonly truth: { readonly inputTokens: number; readonly outputTokens: number; readonly images: number }
  readonly fault: Fault | undefined
}

/** What goes wrong. One request in ten has one. */
export type Fault = 'caller leaves' | 'refused' | 'broken off' | 'hangs' | 'late' | 'slow reader'

const faults: readonly Fault[] = [
  'caller leaves',
  'caller leaves',
  'refused',
  'broken off',
  'hangs',
  'late',
  'slow reader',
]
const recording = clip('flac.ogg')

export function soakRequest(chance: Chance, mark: number): SoakRequest {
  const fault = chance.is(0.1) ? chance.pick(faults) : undefined
  const made = chance.pick(makers)(chance, mark)
  return { contentType: 'application/json', ...made, answer: faultyAnswer(made.answer, fault, chance), fault }
}

type Made = Omit<SoakRequest, 'fault' | 'contentType'> & { readonly contentType?: string }

const makers: readonly ((chance: Chance, mark: number) => Made)[] = [
  (chance, mark) => generation('/chat/completions', true, chance, mark),
  (chance, mark) => generation('/chat/completions', true, chance, mark),
  (chance, mark) => generation('/chat/completions', false, chance, mark),
  (chance, mark) => generation('/completions', chance.is(0.5), chance, mark),
  embeddings,
  rerank,
  images,
  speech,
]

function json(body: object): Buffer<ArrayBuffer> {
  return Buffer.from(JSON.stringify(body))
}

function whole(body: object): EngineAnswer {
  return { status: 200, headers: { 'content-type': 'application/json' }, pieces: [json(body)], ending: 'end' }
}

function generation(path: string, isStream: boolean, chance: Chance, mark: number): Made {
  const isChat = path === '/chat/completions'
  const outputTokens = 1 + chance.below(60)
  // The prompt is long enough for the count: an engine cannot read more tokens than it was sent bytes.
  const text = `${marker(mark)} ${'A weir lets water through. '.repeat(1 + chance.below(20))}`
  const inputTokens = 5 + chance.below(20)
  const usage = { prompt_tokens: inputTokens, completion_tokens: outputTokens }
  const asked = {
    model: 'fuzz/chat',
    max_tokens: 64,
    ...(isChat ? { messages: [{ role: 'user', content: text }] } : { prompt: text }),
  }
  const truth = { inputTokens, outputTokens, images: 0 }
  const tokens = Array.from({ length: outputTokens }, (_, index) => ` t${index}`)
  if (!isStream) {
    const content = isChat ? { message: { content: tokens.join('') } } : { text: tokens.join('') }
    return {
      path,
      body: json(asked),
      answer: whole({ choices: [{ index: 0, ...content, finish_reason: 'stop' }], usage }),
      truth,
    }
  }
  const event = (body: object): Buffer => Buffer.from(`data: ${JSON.stringify(body)}\n\n`)
  const piece = (it: string): object => (isChat ? { delta: { content: it } } : { text: it })
  const pieces = [
    ...tokens.map((it) => event({ choices: [{ index: 0, ...piece(it), finish_reason: null }] })),
    event({ choices: [{ index: 0, ...(isChat ? { delta: {} } : { text: '' }), finish_reason: 'stop' }] }),
    event({ choices: [], usage }),
    Buffer.from('data: [DONE]\n\n'),
  ]
  const answer = {
    status: 200,
    headers: { 'content-type': 'text/event-stream' },
    pieces,
    ending: 'end' as const,
    pieceMs: chance.below(4),
  }
  return { path, body: json({ ...asked, stream: true, stream_options: { include_usage: true } }), answer, truth }
}

function embeddings(chance: Chance, mark: number): Made {
  const input = Array.from({ length: 1 + chance.below(20) }, () => `${marker(mark)} A weir.`)
  const inputTokens = input.length * 3
  const vector = Array.from({ length: 64 }, (_, index) => index / 64)
  return {
    path: '/embeddings',
    body: json({ model: 'fuzz/embedder', input }),
    answer: whole({
      data: input.map((_, index) => ({ object: 'embedding', index, embedding: vector })),
      usage: { prompt_tokens: inputTokens },
    }),
    truth: { inputTokens, outputTokens: 0, images: 0 },
  }
}

function rerank(chance: Chance, mark: number): Made {
  const documents = Array.from({ length: 1 + chance.below(10) }, () => 'A weir lets water through.')
  const inputTokens = documents.length * 7
  return {
    path: '/rerank',
    body: json({ model: 'fuzz/reranker', query: marker(mark), documents }),
    answer: whole({
      results: documents.map((_, index) => ({ index, relevance_score: 0.5 })),
      usage: { prompt_tokens: inputTokens },
    }),
    truth: { inputTokens, outputTokens: 0, images: 0 },
  }
}

function images(chance: Chance, mark: number): Made {
  const count = 1 + chance.below(3)
  const data = Array.from({ length: count }, () => ({ b64_json: png({ more: 2000 }).toString('base64') }))
  return {
    path: '/images/generations',
    body: json({ model: 'fuzz/painter', prompt: marker(mark), n: count, response_format: 'b64_json' }),
    answer: whole({ data }),
    truth: { inputTokens: 0, outputTokens: 0, images: count },
  }
}

function speech(_chance: Chance, mark: number): Made {
  const field = (name: string, value: string): string =>
    `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
  const file = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.ogg"\r\n\r\n'
  return {
    path: '/audio/transcriptions',
    contentType: 'multipart/form-data; boundary=b',
    body: Buffer.concat([
      Buffer.from(field('model', 'fuzz/listener') + field('prompt', marker(mark)) + file),
      recording,
      Buffer.from('\r\n--b--\r\n'),
    ]),
    answer: whole({ text: ' A weir.', language: 'en' }),
    truth: { inputTokens: 0, outputTokens: 0, images: 0 },
  }
}

function faultyAnswer(answer: EngineAnswer, fault: Fault | undefined, chance: Chance): EngineAnswer {
  const some = answer.pieces.slice(0, chance.below(answer.pieces.length))
  switch (fault) {
    case 'refused':
      return { ...answer, status: chance.pick([400, 429, 500, 503]), pieces: [Buffer.from('{"error":"no"}')] }
    case 'broken off':
      return { ...answer, pieces: some, ending: chance.pick(['reset', 'short']) }
    case 'hangs':
      return { ...answer, pieces: some, ending: 'hang' }
    case 'late':
      return { ...answer, delayMs: 500 + chance.below(1500) }
    default:
      return answer
  }
}
