import type { ChatForm } from '../chat/form.ts'
import { wholeMessage, type AnswerNeeds } from './answer.ts'
import { messagesEvents } from './stream.ts'

/** The form of /messages for a chat. */
export function messagesForm(needs: AnswerNeeds): ChatForm {
  return {
    endpoint: '/messages',
    names: { input: 'messages', limit: 'max_tokens' },
    whole: (head, result) => wholeMessage(head, result, needs),
    stream: (head, likelyInputTokens) => messagesEvents(head, likelyInputTokens, needs),
  }
}
