import type { LlamaContextSequence, LlamaModel, Token } from 'node-llama-cpp'
import type { Sampling, TokenLogprob } from '../runtime/engine-model.ts'

/**
 * The runtime reports probabilities after temperature. Raising them to the power of the temperature and normalising
 * again gives back the model's own, over the tokens that top_p, top_k, min_p and a grammar leave.
 */
export function sampledLogprob(
  model: LlamaModel,
  token: Token,
  before: readonly Token[],
  probabilities: ReadonlyMap<Token, number>,
  { temperature = 1, topLogprobs = 0 }: Sampling,
): TokenLogprob {
  const power = temperature > 0 ? temperature : 1
  let sum = 0
  for (const probability of probabilities.values()) sum += probability ** power
  const logprobOf = (probability: number): number =>
    power * Math.log(Math.max(probability, Number.MIN_VALUE)) - Math.log(sum)
  const textOf = (one: Token): string => model.detokenize([one], true, before)
  const top = probabilities
    .entries()
    .take(topLogprobs)
    .map(([other, probability]) => ({ text: textOf(other), logprob: logprobOf(probability) }))
  return { text: textOf(token), logprob: logprobOf(probabilities.get(token) ?? 0), top: [...top] }
}

/** Log probabilities of the prompt itself, for `echo` with `logprobs`. Evaluates every token but the last. */
export async function promptLogprobs(
  model: LlamaModel,
  sequence: LlamaContextSequence,
  tokens: readonly Token[],
  topLogprobs: number,
): Promise<TokenLogprob[]> {
  if (tokens.length < 2) {
    return tokens.map((token) => ({ text: model.detokenize([token], true), logprob: null, top: [] }))
  }
  const results = await sequence.controlledEvaluate(
    tokens.slice(0, -1).map((token, index) => [
      token,
      {
        generateNext: {
          logits: { filter: { tokens: tokens.slice(index + 1, index + 2), includeTop: Math.max(1, topLogprobs) } },
          totalLogitWeight: true,
          // Greedy sampling leaves the logits as the model computed them.
          options: { temperature: 0 },
        },
      },
    ]),
  )
  return tokens.map((token, index) => {
    const textOf = (one: Token): string => model.detokenize([one], true, tokens.slice(0, index))
    const next = index === 0 ? undefined : results[index - 1]?.next
    if (!next?.logits) return { text: textOf(token), logprob: null, top: [] }
    const normaliser = Math.max(...next.logits.values()) + Math.log(next.totalLogitWeight ?? 1)
    const top = [...next.logits].slice(0, topLogprobs)
    return {
      text: textOf(token),
      logprob: (next.logits.get(token) ?? -Infinity) - normaliser,
      top: top.map(([other, logit]) => ({ text: textOf(other), logprob: logit - normaliser })),
    }
  })
}
