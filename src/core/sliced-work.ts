/** Work that may take long. At each `yield` it may be interrupted, so that other requests get their turn. */
export type SlicedWork<Result> = Generator<void, Result, void>

/** Sliced work that may also wait for something from outside: it goes on when the promise that it yields has resolved. */
export type WaitingWork<Result> = Generator<void | Promise<unknown>, Result, void>

/** Does all of the work at once. */
export function finish<Result>(work: SlicedWork<Result>): Result {
  for (;;) {
    const step = work.next()
    if (step.done) return step.value
  }
}

/** Waits for a promise in the middle of sliced work. If it rejects, the work ends there. */
export function* resultOf<Result>(promise: Promise<Result>): WaitingWork<Result> {
  let result: { readonly value: Result } | undefined
  yield promise.then((value) => (result = { value }))
  if (!result) throw new Error('sliced work went on before its promise was resolved')
  return result.value
}
