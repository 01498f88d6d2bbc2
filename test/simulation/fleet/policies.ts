import { choose } from '../../../src/engines/prefix/choose.ts'
import { saltedPrompt, sent, warmPrefixes } from '../../../src/engines/prefix/warm-prefixes.ts'
import { seededRandom } from '../../../src/shared/seeded-random.ts'
import { CHUNK_TOKENS, type SimulatedEngine } from './engine.ts'
import type { LoadRequest } from './loads.ts'

/** How one replica of the service chooses an engine. It knows the calls that it has in flight itself. */
export interface Policy {
  choose(request: LoadRequest, loads: readonly number[]): number
}

export const policyNames = ['random', 'round robin', 'least busy', 'prefix', 'oracle'] as const
export type PolicyName = (typeof policyNames)[number]

/** A policy for each replica. */
export function policies(
  name: PolicyName,
  engines: readonly SimulatedEngine[],
  replicas: number,
  options: { readonly cacheTokens: number; readonly seed: number },
): readonly Policy[] {
  const random = seededRandom(options.seed)
  return Array.from({ length: replicas }, (_, replica): Policy => {
    switch (name) {
      case 'random':
        return { choose: () => Math.floor(random() * engines.length) }
      case 'round robin': {
        let next = replica
        return { choose: () => next++ % engines.length }
      }
      case 'least busy':
        return { choose: (_request, loads) => leastOf(loads) }
      case 'prefix':
        return prefix(engines.length, options.cacheTokens)
      case 'oracle':
        return { choose: (request) => oracle(request, engines) }
    }
  })
}

function prefix(engines: number, cacheTokens: number): Policy {
  const names = Array.from({ length: engines }, (_, index) => `http://10.0.0.${index + 1}:8000/v1`)
  const state = warmPrefixes(names, cacheTokens * 4)
  return {
    choose(request, loads) {
      const prompt = saltedPrompt(request.prompt, 'workspace')
      const choice = choose(state, prompt, loads)!
      sent(state, choice, prompt)
      return choice.index
    },
  }
}

/** Knows what is in every cache and how busy every engine is, whichever replica the calls came from. */
function oracle({ tokens, chunks }: LoadRequest, engines: readonly SimulatedEngine[]): number {
  const average = (engines.reduce((sum, { inFlight }) => sum + inFlight, 0) + 1) / engines.length
  return leastOf(
    engines.map(({ cache, inFlight }) =>
      inFlight > average * 1.25 ? Infinity : (tokens - cache.depth(chunks) * CHUNK_TOKENS + 256) * (inFlight + 1),
    ),
  )
}

function leastOf(values: readonly number[]): number {
  let best = 0
  for (let index = 1; index < values.length; index++) if (values[index]! < values[best]!) best = index
  return best
}
