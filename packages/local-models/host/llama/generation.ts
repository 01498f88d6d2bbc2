import {
  LlamaGrammarEvaluationState,
  type LlamaContextSequence,
  type LlamaGrammar,
  type LlamaModel,
  type SequenceEvaluateOptions,
  type Token,
} from 'node-llama-cpp'
import type { Sampling, TokenLogprob } from '../runtime/engine-model.ts'
import { sampledLogprob } from './logprobs.ts'
import type { ThreadPace } from './thread-pace.ts'

export interface Generation {
  readonly model: LlamaModel
  readonly sequence: LlamaContextSequence
  readonly prompt: readonly Token[]
  readonly sampling: Sampling
  readonly grammar?: LlamaGrammar
  readonly pace: ThreadPace
  readonly signal: AbortSignal
}

export interface GeneratedToken {
  readonly token: Token
  readonly logprob?: TokenLogprob
}

/** How many tokens of a prompt are evaluated at a time. An abort waits for no more than this. */
const PROMPT_CHUNK_TOKENS = 128
const MAX_PENALTY_TOKENS = 1024
/** How many tokens of the prompt the tokenizer sees when it writes the first tokens of the answer. */
const PROMPT_ENDING_TOKENS = 8

/** The raw tokens of one answer, up to the end-of-generation token. The caller stops by leaving the loop. */
export async function* generateTokens(generation: Generation): AsyncGenerator<GeneratedToken> {
  const { pace } = generation
  pace.begin()
  try {
    for await (const token of evaluatedTokens(generation)) {
      pace.step()
      yield token
    }
  } finally {
    pace.end()
  }
}

async function* evaluatedTokens(generation: Generation): AsyncGenerator<GeneratedToken> {
  const { model, sequence, sampling, pace, signal } = generation
  let tokens = generation.prompt.slice(sequence.nextTokenIndex)
  while (tokens.length > PROMPT_CHUNK_TOKENS) {
    signal.throwIfAborted()
    await sequence.evaluateWithoutGeneratingNewTokens(tokens.slice(0, PROMPT_CHUNK_TOKENS))
    tokens = tokens.slice(PROMPT_CHUNK_TOKENS)
    pace.step()
  }
  signal.throwIfAborted()
  const generated: Token[] = []
  const options = evaluateOptions(generation, generated)
  if (sampling.topLogprobs === undefined) {
    for await (const token of sequence.evaluate(tokens, options)) {
      signal.throwIfAborted()
      generated.push(token)
      yield { token }
    }
    return
  }
  const ending = generation.prompt.slice(-PROMPT_ENDING_TOKENS)
  const evaluated = sequence.evaluateWithMetadata(tokens, { probabilities: true }, options)
  for await (const { token, probabilities } of evaluated) {
    signal.throwIfAborted()
    const logprob = sampledLogprob(model, token, [...ending, ...generated], probabilities, sampling)
    generated.push(token)
    yield { token, logprob }
  }
}

/** Every option is set: the library's own defaults would cut the distribution without being asked. */
function evaluateOptions({ model, sampling, grammar }: Generation, generated: Token[]): SequenceEvaluateOptions {
  const { temperature = 1, topP = 1, topK = 0, minP = 0, seed, repetitionPenalty = 1 } = sampling
  const { frequencyPenalty = 0, presencePenalty = 0 } = sampling
  const hasPenalty = repetitionPenalty !== 1 || frequencyPenalty !== 0 || presencePenalty !== 0
  return {
    temperature,
    topP,
    topK: Math.max(0, topK),
    minP,
    ...(seed === undefined ? {} : { seed: Number(BigInt.asUintN(32, BigInt(seed))) }),
    ...(grammar ? { grammarEvaluationState: new LlamaGrammarEvaluationState({ model, grammar }) } : {}),
    ...(hasPenalty
      ? {
          repeatPenalty: {
            punishTokens: () => generated.slice(-MAX_PENALTY_TOKENS),
            maxPunishTokens: MAX_PENALTY_TOKENS,
            penalty: repetitionPenalty,
            frequencyPenalty,
            presencePenalty,
          },
        }
      : {}),
  }
}
