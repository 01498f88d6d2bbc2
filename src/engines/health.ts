import type { HealthCheck } from '../core/catalog.ts'
import { AnswerStalled } from '../http-client/index.ts'
import type { EngineAddress } from './address.ts'

const INTERVAL_DOWN_MS = 1000
const PROBE_TIMEOUT_MS = 5000
const PROBE_BYTES_MAX = 65_536
const FAILURES_UNTIL_DOWN = 2

/** `unknown`: there is no telling, so nothing changes. */
type Verdict = 'alive' | 'down' | 'unknown'

/**
 * Looks regularly whether an address works. Calls in flight that get their answers say so better than any probe, and a
 * server that works on one call at a time may have no time for a probe, or stop the call for it. So an address is
 * probed while it has no calls; while they are silent, only if a probe does no harm, or if one of them has failed.
 * Returns a function that stops the looks.
 */
export function watchHealth(
  address: EngineAddress,
  check: HealthCheck,
  lines: string,
  changed: (healthy: boolean) => void,
): () => void {
  const { activity } = address
  let signsSeen = activity.signsOfLife
  let failures = 0
  let stopped = false
  let timer: NodeJS.Timeout

  async function look(): Promise<void> {
    const verdict = await judge()
    if (stopped) return
    if (verdict !== 'unknown') take(verdict === 'alive')
    // Look again soon after a failure.
    const waitMs = failures === 0 ? check.intervalMs : Math.min(check.intervalMs, INTERVAL_DOWN_MS)
    timer = setTimeout(() => void look(), waitMs)
    timer.unref()
  }

  function take(isAlive: boolean): void {
    failures = isAlive ? 0 : failures + 1
    const healthy = isAlive || (address.healthy && failures < FAILURES_UNTIL_DOWN)
    if (healthy === address.healthy) return
    address.healthy = healthy
    changed(healthy)
  }

  async function judge(): Promise<Verdict> {
    const hasSpoken = activity.signsOfLife > signsSeen
    signsSeen = activity.signsOfLife
    const isTrusted = activity.inFlight > 0 && !activity.isInDoubt
    if (isTrusted && hasSpoken) return 'alive'
    if (isTrusted && !check.isCheap) return 'unknown'
    const answer = await probe(address, check.path, lines)
    if (answer !== 'silent') return answer
    // It may be busy with a call that came before the probe.
    const isBusy = activity.inFlight > 0 || activity.signsOfLife > signsSeen
    return isBusy && !activity.isInDoubt ? 'unknown' : 'down'
  }

  void look()
  return () => {
    stopped = true
    clearTimeout(timer)
  }
}

/** Any status below 500 is a sign of life: not every server has the path, but one that answers 404 is there. */
async function probe(address: EngineAddress, path: string, lines: string): Promise<'alive' | 'down' | 'silent'> {
  try {
    const { status } = await address.ask(path, lines, { timeoutMs: PROBE_TIMEOUT_MS, maxBytes: PROBE_BYTES_MAX })
    return status < 500 ? 'alive' : 'down'
  } catch (error) {
    return error instanceof AnswerStalled ? 'silent' : 'down'
  }
}
