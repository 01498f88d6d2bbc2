import type { ChatForm } from '../chat/form.ts'
import { wholeMessage, type MessagesAnswerNeeds } from './answer.ts'
import { messagesEvents } from './stream.ts'

export const messagesNames: ChatForm['names'] = { input: 'messages', limit: 'max_tokens' }

/** The format of /messages for a chat. */
export function messagesForm(needs: MessagesAnswerNeeds): ChatForm {
  return {
    endpoint: '/messages',
    names: messagesNames,
    whole: (head, result) => wholeMessage(head, result, needs),
    stream: (head, likelyInputTokens) => messagesEvents(head, likelyInputTokens, needs),
  }
}
