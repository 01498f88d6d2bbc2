import { Failure } from '../../../shared/client.ts'
import { streamChat, type ChatBody, type ToolCallPiece } from './chat-stream.ts'
import { STOPPED, type Answer, type ToolCall } from './conversation.ts'

/** Fills in the answer as it arrives. Resolves with the refusal if the service refused the request. */
export async function receive(body: ChatBody, answer: Answer, signal: AbortSignal): Promise<Failure | undefined> {
  const started = performance.now()
  let firstTokenMs: number | undefined
  let requestId = ''
  answer.isRunning.value = true
  try {
    const stream = await streamChat(body, signal)
    ;({ requestId } = stream)
    for await (const { text = '', reasoning = '', toolCalls = [] } of stream.pieces) {
      if (text !== '' || reasoning !== '' || toolCalls.length > 0) firstTokenMs ??= performance.now() - started
      answer.text.value += text
      answer.reasoning.value += reasoning
      if (toolCalls.length > 0) answer.toolCalls.value = withPieces(answer.toolCalls.value, toolCalls)
    }
  } catch (error) {
    answer.failure.value = signal.aborted ? STOPPED : (error as Error).message
    if (error instanceof Failure) {
      answer.isRefused.value = true
      if (error.requestId !== undefined) {
        const durationMs = performance.now() - started
        answer.measured.value = { requestId: error.requestId, durationMs, isRefused: true }
      }
      return error
    }
  } finally {
    answer.isRunning.value = false
  }
  if (requestId === '') return undefined
  const durationMs = performance.now() - started
  answer.measured.value = { requestId, durationMs, ...(firstTokenMs === undefined ? {} : { firstTokenMs }) }
  return undefined
}

function withPieces(known: readonly ToolCall[], pieces: readonly ToolCallPiece[]): readonly ToolCall[] {
  const calls = [...known]
  for (const { index, id = `call_${index}`, name = '', arguments: more = '' } of pieces) {
    const call = calls[index] ?? { id, name: '', arguments: '' }
    calls[index] = { id: call.id, name: call.name || name, arguments: call.arguments + more }
  }
  return calls
}
