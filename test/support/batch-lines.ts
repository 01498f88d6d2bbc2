/** Lines of the files of batches. */

/** A line that asks for a chat. */
export const chatLine = (id: string | number, body: object = {}, changes: object = {}): object => ({
  custom_id: String(id),
  method: 'POST',
  url: '/v1/chat/completions',
  body: { model: 'meta/test-8b', messages: [{ role: 'user', content: `Question ${id}` }], ...body },
  ...changes,
})

export interface BatchLine {
  readonly custom_id: string
  readonly response: { readonly status_code: number; readonly request_id: string; readonly body: Answer } | null
  readonly error: { readonly code: string; readonly message: string } | null
}

interface Answer {
  readonly id: string
  readonly error?: { readonly code: string }
  readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number }
}
