/** Work that may take long. At each `yield` it may be interrupted, so that other requests get their turn. */
export type SlicedWork<Result> = Generator<void, Result, void>

/** Does all of the work at once. */
export function finish<Result>(work: SlicedWork<Result>): Result {
  for (;;) {
    const step = work.next()
    if (step.done) return step.value
  }
}
