import type { Body } from '../../api.ts'
import { send } from '../../../shared/client.ts'

/** A streamed chat as it arrives. */

export type ChatBody = Body<'chatCompletions'>

export interface ToolCallPiece {
  readonly index: number
  readonly id?: string
  readonly name?: string
  readonly arguments?: string
}

export interface ChatPiece {
  readonly text?: string
  readonly reasoning?: string
  /** Tool calls: the arguments arrive in pieces. */
  readonly toolCalls?: readonly ToolCallPiece[]
  readonly finishReason?: string
}

export interface StreamedChat {
  readonly requestId: string
  readonly queueWaitMs: number
  readonly pieces: AsyncGenerator<ChatPiece>
}

export async function streamChat(body: ChatBody, signal: AbortSignal): Promise<StreamedChat> {
  const response = await send('/api/v1/chat/completions', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ ...body, stream: true }),
    signal,
  })
  return {
    requestId: response.headers.get('x-request-id') ?? '',
    queueWaitMs: Number(response.headers.get('x-queue-wait-ms') ?? 0),
    pieces: piecesOf(response),
  }
}

interface Chunk {
  readonly choices?: readonly {
    readonly finish_reason?: string | null
    readonly delta?: {
      readonly content?: string | null
      readonly reasoning_content?: string | null
      readonly reasoning?: string | null
      readonly tool_calls?: readonly {
        readonly index: number
        readonly id?: string
        readonly function?: { readonly name?: string; readonly arguments?: string }
      }[]
    }
  }[]
  readonly error?: { readonly message: string }
}

async function* piecesOf(response: Response): AsyncGenerator<ChatPiece> {
  for await (const data of eventsOf(response)) {
    if (data === '[DONE]') return
    const chunk = JSON.parse(data) as Chunk
    if (chunk.error) throw new Error(chunk.error.message)
    const choice = chunk.choices?.[0]
    if (!choice) continue
    const { content, reasoning_content: thought, reasoning = thought, tool_calls: calls } = choice.delta ?? {}
    yield {
      ...(content ? { text: content } : {}),
      ...(reasoning ? { reasoning } : {}),
      ...(calls ? { toolCalls: calls.map(({ function: it, ...call }) => ({ ...call, ...it })) } : {}),
      ...(choice.finish_reason ? { finishReason: choice.finish_reason } : {}),
    }
  }
  throw new Error('The answer broke off before its end.')
}

/** The data of each event. Our own streams have one line of data in each. */
async function* eventsOf(response: Response): AsyncGenerator<string> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  if (!reader) return
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const events = (rest + value).split('\n\n')
    rest = events.pop() ?? ''
    for (const event of events) if (event.startsWith('data: ')) yield event.slice('data: '.length)
  }
}
