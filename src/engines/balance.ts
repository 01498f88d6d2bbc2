import { choose } from './prefix/choose.ts'
import { forget, learn, resize, sent, shareOf, warmPrefixes, type Prompt } from './prefix/warm-prefixes.ts'
import type { Placement } from './engine.ts'
import type { EngineAddress } from './address.ts'

/** Chooses the address of an engine for the next call. A drained address gets none. */
export interface Balance {
  /** undefined: none is left to try. */
  next(prompt: Prompt | undefined, tried: ReadonlySet<EngineAddress>): Chosen | undefined
  /** The server behind an address is gone, and so is its cache. */
  forget(address: EngineAddress): void
  /** Sets how many tokens the cache of an address holds. */
  resize(address: EngineAddress, cacheTokens: number): void
}

export interface Chosen {
  readonly address: EngineAddress
  /** Records the tokens that the engine had in its cache. Returns what was expected. */
  learn(cachedTokens: number): Placement | undefined
}

/** The healthy address with the fewest calls; if none is healthy, one that may have recovered. */
export function leastBusy(addresses: readonly EngineAddress[]): Balance {
  return {
    next(_prompt, tried) {
      let best: EngineAddress | undefined
      for (const address of addresses) {
        if (tried.has(address) || address.isDrained()) continue
        if (!best || rank(address) < rank(best)) best = address
      }
      return best && { address: best, learn: () => undefined }
    },
    forget() {},
    resize() {},
  }
}

function rank(address: EngineAddress): number {
  return address.inFlight + (address.healthy ? 0 : 1e9)
}

/** In most languages, a token has this many characters or fewer. Overestimating the size of a cache does no harm. */
const CHARACTERS_PER_TOKEN = 4

/**
 * The address with the least work for a prompt, by what was sent where. Calls without a prompt go to the least busy.
 */
export function byPrefix(addresses: readonly EngineAddress[], cacheTokens: number): Balance {
  const state = warmPrefixes(
    addresses.map(({ url }) => url),
    cacheTokens * CHARACTERS_PER_TOKEN,
  )
  const others = leastBusy(addresses)
  return {
    next(prompt, tried) {
      if (!prompt) return others.next(prompt, tried)
      const isLeft = (address: EngineAddress): boolean => !tried.has(address) && !address.isDrained()
      const isAnyUp = addresses.some((address) => address.healthy && isLeft(address))
      const loads = addresses.map((address) =>
        isLeft(address) && (address.healthy || !isAnyUp) ? address.inFlight : undefined,
      )
      const choice = choose(state, prompt, loads)
      const address = choice && addresses[choice.index]
      if (!address) return undefined
      sent(state, choice, prompt)
      return {
        address,
        learn(cachedTokens) {
          const isTelling = learn(state, choice, prompt, cachedTokens)
          return { here: shareOf(prompt, choice.depth), anywhere: shareOf(prompt, choice.deepest), isTelling }
        },
      }
    },
    forget: (address) => forget(state, addresses.indexOf(address)),
    resize: (address, tokens) => resize(state, addresses.indexOf(address), tokens * CHARACTERS_PER_TOKEN),
  }
}
