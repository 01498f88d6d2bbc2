/**
 * Limits the memory that requests hold at the same time: all of them together, and those of one owner. No owner gets
 * more than half, so that one alone can never keep the others out.
 */
export interface ByteBudget {
  /** The bytes held now. */
  held(): number
  /** For one holder, which starts with nothing. */
  open(owner: string): HeldBytes
}

/** The bytes of one holder. */
export interface HeldBytes {
  /** Holds this many from now on. If there is no room for more, nothing changes, and the result says what is full. */
  hold(bytes: number): 'share' | 'budget' | undefined
  /** Holds this many even if there is no room, because they are in memory already. */
  keep(bytes: number): void
  release(): void
}

export function byteBudget(maxBytes: number): ByteBudget {
  const totals: Totals = { maxBytes, all: 0, byOwner: new Map() }
  return { held: () => totals.all, open: (owner) => new Held(totals, owner) }
}

interface Totals {
  readonly maxBytes: number
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
    const { maxBytes, all, byOwner } = this.#totals
    const more = bytes - this.#own
    if (more > 0 && (byOwner.get(this.#owner) ?? 0) + more > maxBytes / 2) return 'share'
    if (more > 0 && all + more > maxBytes) return 'budget'
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
