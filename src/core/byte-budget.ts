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
  const share = maxBytes / 2
  const byOwner = new Map<string, number>()
  let total = 0

  function open(owner: string): HeldBytes {
    let own = 0

    function keep(bytes: number): void {
      const ofOwner = (byOwner.get(owner) ?? 0) + bytes - own
      total += bytes - own
      own = bytes
      if (ofOwner === 0) byOwner.delete(owner)
      else byOwner.set(owner, ofOwner)
    }

    return {
      hold(bytes) {
        const more = bytes - own
        if (more > 0 && (byOwner.get(owner) ?? 0) + more > share) return 'share'
        if (more > 0 && total + more > maxBytes) return 'budget'
        keep(bytes)
        return undefined
      },
      keep,
      release: () => keep(0),
    }
  }

  return { held: () => total, open }
}
