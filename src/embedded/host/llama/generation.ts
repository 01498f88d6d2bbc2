import { LlamaGrammarEvaluationState } from 'node-llama-cpp'
import type { LlamaContextSequence, LlamaGrammar, LlamaModel, SequenceEvaluateOptions, Token } from 'node-llama-cpp'
import type { Sampling, TokenLogprob } from '../runtime/engine-model.ts'
import { sampledLogprob } from './logprobs.ts'
import type { ThreadPace } from './thread-pace.ts'

export interface Generation {
  model: LlamaModel
  sequence: LlamaContextSequence
  prompt: readonly Token[]
  sampling: Sampling
  grammar?: LlamaGrammar
  pace: ThreadPace
  signal: AbortSignal
}

export interface GeneratedToken {
  token: Token
  logprob?: TokenLogprob
}

/** Tokens of a prompt evaluated at a time: an abort waits for no more than this. */
const promptChunkTokens = 128
const penaltyTokensMax = 1024

/** The raw tokens of one answer, up to the end-of-generation token. The caller stops by leaving the loop. */
export async function* generateTokens(generation: Generation): AsyncGenerator<GeneratedToken> {
  const { pace } = generation
  pace.begin()
  try {
    for await (const token of pacedTokens(generation)) {
      pace.step()
      yield token
    }
  } finally {
    pace.end()
  }
}

async function* pacedTokens(generation: Generation): AsyncGenerator<GeneratedToken> {
  const { model, sequence, sampling, pace, signal } = generation
  let tokens = generation.prompt.slice(sequence.nextTokenIndex)
  while (tokens.length > promptChunkTokens) {
    signal.throwIfAborted()
    await sequence.evaluateWithoutGeneratingNewTokens(tokens.slice(0, promptChunkTokens))
    tokens = tokens.slice(promptChunkTokens)
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
  const ending = generation.prompt.slice(-8)
  for await (const { token, probabilities } of sequence.evaluateWithMetadata(
    tokens,
    { probabilities: true },
    options,
  )) {
    signal.throwIfAborted()
    const logprob = sampledLogprob(model, token, [...ending, ...generated], probabilities, sampling)
    generated.push(token)
    yield { token, logprob }
  }
}

/** Everything is said outright: the library's own defaults would cut the distribution without being asked. */
function evaluateOptions({ model, sampling, grammar }: Generation, generated: Token[]): SequenceEvaluateOptions {
  const { temperature = 1, topP = 1, topK = 0, minP = 0, seed, repetitionPenalty = 1 } = sampling
  const { frequencyPenalty = 0, presencePenalty = 0 } = sampling
  const penalised = repetitionPenalty !== 1 || frequencyPenalty !== 0 || presencePenalty !== 0
  return {
    temperature,
    topP,
    topK: Math.max(0, topK),
    minP,
    ...(seed === undefined ? {} : { seed: Number(BigInt.asUintN(32, BigInt(seed))) }),
    ...(grammar ? { grammarEvaluationState: new LlamaGrammarEvaluationState({ model, grammar }) } : {}),
    ...(penalised
      ? {
          repeatPenalty: {
            punishTokens: () => generated.slice(-penaltyTokensMax),
            maxPunishTokens: penaltyTokensMax,
            penalty: repetitionPenalty,
            frequencyPenalty,
            presencePenalty,
          },
        }
      : {}),
  }
}
