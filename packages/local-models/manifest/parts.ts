import type { HubSource, NpmMember, PackageSource, WheelMember } from '../contract.ts'

export const MEGABYTE = 1_000_000

export function npmPackages(...members: NpmMember[]): PackageSource {
  return { kind: 'npm', members }
}

export function wheels(...members: WheelMember[]): PackageSource {
  return { kind: 'pypi', members }
}

export function hubFile(repository: string, path: string): HubSource {
  return { kind: 'hub', repository, revision: 'main', path }
}

/** The parameters of every GGUF chat model. */
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
