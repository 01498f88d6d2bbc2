/** Other names that some servers use for the reasons. */
const otherNames: Readonly<Record<string, string>> = {
  eos: 'stop',
  eos_token: 'stop',
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  function_call: 'tool_calls',
}

/** vLLM and SGLang report this for a choice that was aborted on their side. */
const BROKEN_OFF = new Set(['abort', 'error'])

/** Why a choice ended, by the name that callers know; undefined if it has not ended, or was aborted. */
export function finishReason(reason: unknown): string | undefined {
  if (typeof reason !== 'string' || reason === '' || BROKEN_OFF.has(reason)) return undefined
  return otherNames[reason] ?? reason
}
