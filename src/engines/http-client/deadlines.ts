/**
 * Deadlines with the same duration, so that they expire in the order in which they were set. One timer serves all of
 * them: a timer for each call would cost more than everything else this client does for the call.
 */
export interface Deadlines {
  /** Calls back when the time has expired. Returns a function that cancels the deadline. */
  set(due: () => void): () => void
}

interface Deadline {
  readonly at: number
  readonly due: () => void
  before: Deadline | undefined
  after: Deadline | undefined
}

export function deadlines(ms: number, now = (): number => performance.now()): Deadlines {
  // A linked list, not a Set: a Set that grows and shrinks leaves old tables behind that still reference calls. Once
  // such a table is in the old generation, the garbage collector treats those calls as alive and copies them.
  let first: Deadline | undefined
  let last: Deadline | undefined
  let timer: NodeJS.Timeout | undefined

  function remove(deadline: Deadline): void {
    const { before, after } = deadline
    if (before) before.after = after
    else if (first === deadline) first = after
    else return
    if (after) after.before = before
    else last = before
    deadline.before = deadline.after = undefined
  }

  function expire(): void {
    timer = undefined
    for (let deadline = first; deadline; deadline = first) {
      const left = deadline.at - now()
      if (left > 0) {
        // A callback may have set another deadline, and with it a timer that is later than this.
        clearTimeout(timer)
        timer = setTimeout(expire, Math.ceil(left)).unref()
        return
      }
      remove(deadline)
      deadline.due()
    }
  }

  return {
    set(due) {
      const deadline: Deadline = { at: now() + ms, due, before: last, after: undefined }
      if (last) last.after = deadline
      else first = deadline
      last = deadline
      // The timer stays when its deadline is cancelled. If others have been set since, it is rescheduled for the first
      // of them.
      timer ??= setTimeout(expire, ms).unref()
      return () => remove(deadline)
    },
  }
}
