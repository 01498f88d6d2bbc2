import type { Deployment, Model } from '../../catalog/model.ts'
import { ApiError } from '../../shared/errors.ts'
import { expectedCount, inputBounds } from '../metering/usage-bounds.ts'
import { forwardBody, HEADROOM, type JsonBody } from '../../shared/json/json-body.ts'
import type { Job } from '../../engines/job.ts'
import { MIN_PROMPT_CHARACTERS, promptHasher, type PromptBlocks } from '../../engines/prefix/prompt-blocks.ts'
import { sumOf, textTokens, type TokenEstimate } from '../../shared/tokens/token-estimate.ts'
import { completionsAnswer } from './answer.ts'
import { completionsRequestSchema, type CompletionsRequest } from './schema.ts'
import { operationOf, supportOf } from '../request/engine-operation.ts'
import { generationCalls, SPLIT_PARAMETERS, type SplitChoices } from '../generation/generation-calls.ts'
import type { GenerationOptions } from '../generation/generation-options.ts'
import {
  allowedOutputTokens,
  parameterTokens,
  requireSmallParameters,
  acceptedParameters,
  forwardedParameters,
  tierOf,
} from '../request/parameters.ts'
import { invalidParameter, requireValid } from '../../shared/json/schema-check.ts'
import type { PreparedRequest } from '../request/prepared-request.ts'

const DEFAULT_MAX_TOKENS = 16
const required = new Set(['prompt'])
const SUFFIX: ReadonlySet<string> = new Set(['suffix'])

/** What the job of a text completion needs besides its terms and its bodies. */
interface CompletionsPlan {
  readonly isStream: boolean
  readonly options: Pick<GenerationOptions, 'limit' | 'includeUsage' | 'prompts'>
  /** Set if the engine generates one choice per call. */
  readonly split: SplitChoices | undefined
}

/** POST /completions: checks the request and builds the bodies for the engine. */
export function prepareCompletions(
  body: JsonBody,
  model: Model,
  deployment: Deployment,
): PreparedRequest<CompletionsPlan> {
  const dialect = operationOf(model, deployment, 'completions')
  requireValid(completionsRequestSchema, body.value)
  const request = body.value as CompletionsRequest
  requireConsistent(request)
  const support = supportOf(deployment, 'completions')
  const accepted = acceptedParameters(request, completionsRequestSchema.properties, required, model, support)
  const { keeps, translated } = forwardedParameters(request, accepted, support)
  const prompts = typeof request.prompt === 'string' ? [request.prompt] : request.prompt
  // The model reads the suffix with every prompt.
  const suffix = request.suffix ?? ''
  const suffixTokens = textTokens(suffix, model.tokenizer)
  const inputs = prompts.map((prompt) => sumOf([textTokens(prompt, model.tokenizer), suffixTokens]))
  const others = accepted.difference(SUFFIX)
  requireSmallParameters(body, others)
  const parameters = parameterTokens(body, others, model.tokenizer)
  const input = sumOf([...inputs, parameters])
  const maxTokens = allowedOutputTokens(model, {
    name: 'max_tokens',
    requested: request.max_tokens,
    fallback: DEFAULT_MAX_TOKENS,
    input: largestOf(inputs),
    inputName: 'prompt',
  })
  const choices = request.n ?? 1
  const generated = prompts.length * (request.best_of ?? choices)
  const fields = {
    model: deployment.engine?.model ?? model.id,
    max_tokens: maxTokens,
    ...(request.stream ? { stream: true, ...dialect.streamFields } : {}),
    ...translated,
  }
  const isSplit = dialect.oneChoicePerCall === true && (typeof request.prompt !== 'string' || generated > 1)
  const keep = (name: string): boolean => keeps(name) && !(isSplit && SPLIT_PARAMETERS.has(name))
  // A list of prompts is not repeated in each call.
  const list = isSplit && typeof request.prompt !== 'string' ? prompts : undefined
  const sent = list
    ? jsonBytes({ ...fields, ...chosenFrom(request, keep) })
    : forwardBody(body.bytes, HEADROOM, body.scan.fields, (name) => keep(name) || name === 'prompt', fields)
  return {
    terms: {
      tier: tierOf(request.service_tier, model),
      // The model cannot read more than its context with any prompt, even if the estimate is higher.
      cost: Math.min(input.charged, prompts.length * model.contextLength) + maxTokens * generated,
      maxTokens: maxTokens * generated,
      ...inputBounds(
        {
          bytes: sent.length + bytesOf(list ?? []) + Buffer.byteLength(suffix) * (prompts.length - 1),
          contexts: prompts.length,
        },
        model.contextLength,
      ),
      likelyInputTokens: input.likely,
      expectedInput: expectedCount(input, prompts.length),
      prompt: completionPrompt(prompts, deployment),
    },
    bodies: [sent, ...(list ?? []).map((prompt) => jsonBytes({ prompt }))],
    plan: {
      isStream: request.stream === true,
      options: {
        limit: {
          maxTokens,
          choices: prompts.length * choices,
          generated,
          echoedCharacters: request.echo ? prompts.map(({ length }) => length) : undefined,
          tokenizer: model.tokenizer,
        },
        includeUsage: request.stream_options?.include_usage === true,
        prompts: prompts.length,
      },
      split: isSplit ? { choices, seed: request.seed ?? undefined } : undefined,
    },
  }
}

export function completionsJob(
  { terms, bodies, plan: { isStream, options, split } }: PreparedRequest<CompletionsPlan>,
  model: Model,
  deployment: Deployment,
): Job {
  const dialect = operationOf(model, deployment, 'completions')
  const { oneChoicePerCall, usageOf } = dialect
  return {
    ...terms,
    endpoint: '/completions',
    model,
    deployment,
    calls: generationCalls(dialect, { bodies, isStream, split, inputName: 'prompt' }),
    answer: completionsAnswer(isStream, { ...options, oneChoicePerCall, usageOf }),
  }
}

function jsonBytes(value: object): Buffer {
  return Buffer.from(JSON.stringify(value))
}

/** The prompt, if there is exactly one and the addresses of the engine are not equivalent for it. */
function completionPrompt(
  [prompt = '', ...others]: readonly string[],
  deployment: Deployment,
): PromptBlocks | undefined {
  const isByPrefix = deployment.engine?.balance === 'prefix'
  if (!isByPrefix || others.length > 0 || prompt.length < MIN_PROMPT_CHARACTERS) return undefined
  const hasher = promptHasher()
  hasher.text(prompt)
  return hasher.result()
}

function chosenFrom(request: CompletionsRequest, keep: (name: string) => boolean): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(request).filter(([name]) => keep(name)))
}

function bytesOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
}

/** Each prompt has a context of its own. */
function largestOf(inputs: readonly TokenEstimate[]): TokenEstimate {
  const most = (kind: keyof TokenEstimate): number => Math.max(...inputs.map((it) => it[kind]))
  return { charged: most('charged'), likely: most('likely') }
}

function requireConsistent(request: CompletionsRequest): void {
  if (request.stream_options && !request.stream) {
    throw new ApiError('invalid_value', "'stream_options' is only allowed with stream: true.", {
      param: 'stream_options',
    })
  }
  const { best_of: bestOf, n } = request
  if (bestOf && bestOf < (n ?? 1)) throw invalidParameter('invalid_value', 'best_of', `at least n (${n})`)
  if (bestOf && bestOf > 1 && request.stream) {
    throw new ApiError('invalid_value', "'best_of' is not allowed with stream: true.", { param: 'best_of' })
  }
}
