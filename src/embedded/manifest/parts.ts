import type { FileSource, NpmMember } from './types.ts'

/** What several manifest entries are made of. */

export const megabyte = 1_000_000

export function npm(...members: NpmMember[]): FileSource {
  return { kind: 'npm', members }
}

export function hub(repository: string, path: string): FileSource {
  return { kind: 'hf', repository, revision: 'main', path }
}

/** What every GGUF chat model takes. */
export const chatParameters = [
  'temperature',
  'top_p',
  'top_k',
  'min_p',
  'stop',
  'seed',
  'n',
  'frequency_penalty',
  'presence_penalty',
  'repetition_penalty',
  'logprobs',
  'top_logprobs',
  'echo',
  'response_format',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'chat_template_kwargs',
]
