const MINUTE_MS = 60_000
const DAY_MS = 86_400_000
/** Clocks are corrected by small amounts all the time. */
const BACK_MS = MINUTE_MS
/** A service without requests for longer than this is rare; a wrong clock is more likely. */
const AHEAD_MS = 60 * DAY_MS

/** Why the clock may be wrong, judging by the last row of the ledger. Only a warning: the service starts anyway. */
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
