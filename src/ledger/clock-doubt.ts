const MINUTE_MS = 60_000
const DAY_MS = 86_400_000
/** Clocks are set back by a little all the time. */
const BACK_MS = MINUTE_MS
/** A service that nobody used for longer than this is rare; a clock that is set wrong is more likely. */
const AHEAD_MS = 60 * DAY_MS

/** Why the clock may be wrong, going by the last row of the ledger. Only a hint: the service starts all the same. */
export function clockDoubt(now: number, lastSettledAt: number | undefined): string | undefined {
  if (lastSettledAt === undefined) return undefined
  const last = new Date(lastSettledAt).toISOString()
  if (now < lastSettledAt - BACK_MS) {
    return `the clock is behind the last row of the ledger, which is of ${last}: check the clock`
  }
  if (now > lastSettledAt + AHEAD_MS) {
    return `the last row of the ledger is more than 60 days old (${last}): if that is not so, check the clock before you issue invoices`
  }
  return undefined
}
