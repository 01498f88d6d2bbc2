/**
 * Deadlines that all lie equally far ahead when they are set, so that they come due in the order in which they were set.
 * One timer serves all of them: a timer for each call would cost more than anything else this side does for the call.
 */
export interface Deadlines {
  /** Calls back when the time is over. Returns a function that cancels the deadline. */
  set(due: () => void): () => void
}

interface Deadline {
  readonly at: number
  readonly due: () => void
}

export function deadlines(ms: number, now = (): number => performance.now()): Deadlines {
  const waiting = new Set<Deadline>()
  let timer: NodeJS.Timeout | undefined

  function look(): void {
    timer = undefined
    for (const deadline of waiting) {
      const left = deadline.at - now()
      if (left > 0) {
        timer = setTimeout(look, Math.ceil(left)).unref()
        return
      }
      waiting.delete(deadline)
      deadline.due()
    }
  }

  return {
    set(due) {
      const deadline = { at: now() + ms, due }
      waiting.add(deadline)
      // It stays when its deadline is cancelled. If others have been set since, it looks for the first of them.
      timer ??= setTimeout(look, ms).unref()
      return () => void waiting.delete(deadline)
    },
  }
}
