/**
 * Limits the bytes that requests hold at the same time, in memory or on disk: all of them together, and those of one
 * owner. No owner gets more than half, so that a single one can never block the others.
 */
export interface ByteBudget {
  /** The bytes held now. */
  held(): number
  /** For one holder, which starts with nothing. */
  open(owner: string): HeldBytes
}

/** The bytes of one holder. */
export interface HeldBytes {
  /**
   * Holds this many from now on. If there is no room for more, nothing changes, and the result says which limit is
   * reached.
   */
  hold(bytes: number): 'share' | 'budget' | undefined
  /** Holds this many even if there is no room, because they are in memory already. */
  keep(bytes: number): void
  release(): void
}

export function byteBudget(maxBytes: number): ByteBudget {
  const limits: ByteLimits = { all: maxBytes, owner: maxBytes / 2 }
  return changingByteBudget(() => limits)
}

export interface ByteLimits {
  readonly all: number
  readonly owner: number
}

/** Bytes that are held stay, even if a limit falls below them. */
export function changingByteBudget(limits: (held: number) => ByteLimits): ByteBudget {
  const totals: Totals = { limits, all: 0, byOwner: new Map() }
  return { held: () => totals.all, open: (owner) => new Held(totals, owner) }
}

interface Totals {
  readonly limits: (held: number) => ByteLimits
  all: number
  readonly byOwner: Map<string, number>
}

/** A class, because every waiting request has one. */
class Held implements HeldBytes {
  readonly #totals: Totals
  readonly #owner: string
  #own = 0

  constructor(totals: Totals, owner: string) {
    this.#totals = totals
    this.#owner = owner
  }

  hold(bytes: number): 'share' | 'budget' | undefined {
    const { all, byOwner } = this.#totals
    const more = bytes - this.#own
    if (more > 0) {
      const limits = this.#totals.limits(all)
      if (all + more > limits.all) return 'budget'
      if ((byOwner.get(this.#owner) ?? 0) + more > limits.owner) return 'share'
    }
    this.keep(bytes)
    return undefined
  }

  keep(bytes: number): void {
    const { byOwner } = this.#totals
    const more = bytes - this.#own
    const ofOwner = (byOwner.get(this.#owner) ?? 0) + more
    this.#totals.all += more
    this.#own = bytes
    if (ofOwner === 0) byOwner.delete(this.#owner)
    else byOwner.set(this.#owner, ofOwner)
  }

  release(): void {
    this.keep(0)
  }
}
