import type { ChatForm } from '../chat/form.ts'
import { wholeResponse, type ResponsesAnswerNeeds } from './answer.ts'
import { responsesEvents } from './stream.ts'

export const responsesNames: ChatForm['names'] = { input: 'input', limit: 'max_output_tokens' }

/** The format of /responses for a chat. */
export function responsesForm(needs: ResponsesAnswerNeeds): ChatForm {
  return {
    endpoint: '/responses',
    names: responsesNames,
    whole: (head, result) => wholeResponse(head, result, needs),
    stream: (head) => responsesEvents(head, needs),
  }
}
