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
  before: Deadline | undefined
  after: Deadline | undefined
}

export function deadlines(ms: number, now = (): number => performance.now()): Deadlines {
  // A linked list, not a Set: a Set that grows and shrinks leaves tables behind that hold the calls of their time, and
  // once such a table is old, the collector takes those calls for alive and copies them.
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

  function look(): void {
    timer = undefined
    for (let deadline = first; deadline; deadline = first) {
      const left = deadline.at - now()
      if (left > 0) {
        // One that came due may have set another, and with it a timer that is later than this.
        clearTimeout(timer)
        timer = setTimeout(look, Math.ceil(left)).unref()
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
      // It stays when its deadline is cancelled. If others have been set since, it looks for the first of them.
      timer ??= setTimeout(look, ms).unref()
      return () => remove(deadline)
    },
  }
}
