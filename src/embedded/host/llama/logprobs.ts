import type { LlamaContextSequence, LlamaModel, Token } from 'node-llama-cpp'
import type { Sampling, TokenLogprob } from '../runtime/engine-model.ts'

/**
 * The runtime reports probabilities after temperature; raising them to its power and normalising again gives back what
 * the model itself thought, over the tokens that top_p, top_k, min_p and a grammar left standing.
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
  const logprob = (probability: number) => power * Math.log(Math.max(probability, Number.MIN_VALUE)) - Math.log(sum)
  const text = (of: Token) => model.detokenize([of], true, before)
  const top = probabilities
    .entries()
    .take(topLogprobs)
    .map(([other, probability]) => ({ text: text(other), logprob: logprob(probability) }))
  return { text: text(token), logprob: logprob(probabilities.get(token) ?? 0), top: [...top] }
}

/** Log probabilities of the prompt itself, for `echo` with `logprobs`. Evaluates all tokens but the last. */
export async function promptLogprobs(
  model: LlamaModel,
  sequence: LlamaContextSequence,
  tokens: readonly Token[],
  topLogprobs: number,
): Promise<TokenLogprob[]> {
  if (tokens.length < 2)
    return tokens.map((token) => ({ text: model.detokenize([token], true), logprob: null, top: [] }))
  const results = await sequence.controlledEvaluate(
    tokens.slice(0, -1).map((token, index) => [
      token,
      {
        generateNext: {
          logits: { filter: { tokens: tokens.slice(index + 1, index + 2), includeTop: Math.max(1, topLogprobs) } },
          totalLogitWeight: true,
          // Greedy sampling leaves the logits as the model made them.
          options: { temperature: 0 },
        },
      },
    ]),
  )
  return tokens.map((token, index) => {
    const text = (of: Token) => model.detokenize([of], true, tokens.slice(0, index))
    const next = index === 0 ? undefined : results[index - 1]?.next
    if (!next?.logits) return { text: text(token), logprob: null, top: [] }
    const entries = [...next.logits]
    const normaliser = Math.max(...next.logits.values()) + Math.log(next.totalLogitWeight ?? 1)
    return {
      text: text(token),
      logprob: (next.logits.get(token) ?? -Infinity) - normaliser,
      top: entries.slice(0, topLogprobs).map(([other, logit]) => ({ text: text(other), logprob: logit - normaliser })),
    }
  })
}
