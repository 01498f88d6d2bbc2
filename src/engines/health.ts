import type { HealthCheck } from '../catalog/model.ts'
import { AnswerStalled } from './http-client/index.ts'
import type { EngineAddress } from './address.ts'

const INTERVAL_DOWN_MS = 1000
const PROBE_TIMEOUT_MS = 5000
const PROBE_BYTES_MAX = 65_536
const FAILURES_UNTIL_DOWN = 2

/** `unknown`: cannot be decided, so nothing changes. */
type Verdict = 'alive' | 'down' | 'unknown'

/**
 * Checks regularly whether an address is up. Calls in flight that receive data are better evidence than any probe, and
 * a server that handles one call at a time may have no time for a probe, or stop the call for it. So an address is
 * probed while it has no calls. While its calls receive nothing, it is probed only if a probe does no harm, or if one
 * of them has failed. Returns a function that stops the checks.
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

  async function checkHealth(): Promise<void> {
    const verdict = await judge()
    if (stopped) return
    if (verdict !== 'unknown') take(verdict === 'alive')
    // Probe again soon after a failure.
    const waitMs = failures === 0 ? check.intervalMs : Math.min(check.intervalMs, INTERVAL_DOWN_MS)
    timer = setTimeout(() => void checkHealth(), waitMs)
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
    const hasSignOfLife = activity.signsOfLife > signsSeen
    signsSeen = activity.signsOfLife
    const isTrusted = activity.inFlight > 0 && !activity.isInDoubt
    if (isTrusted && hasSignOfLife) return 'alive'
    if (isTrusted && !check.isCheap) return 'unknown'
    const answer = await probe(address, check.path, lines)
    if (answer !== 'silent') return answer
    // It may be busy with a call that arrived before the probe.
    const isBusy = activity.inFlight > 0 || activity.signsOfLife > signsSeen
    return isBusy && !activity.isInDoubt ? 'unknown' : 'down'
  }

  void checkHealth()
  return () => {
    stopped = true
    clearTimeout(timer)
  }
}

/** Any status below 500 counts as up: not every server has the path, but one that answers 404 is running. */
async function probe(address: EngineAddress, path: string, lines: string): Promise<'alive' | 'down' | 'silent'> {
  try {
    const { status } = await address.query(path, lines, { timeoutMs: PROBE_TIMEOUT_MS, maxBytes: PROBE_BYTES_MAX })
    return status < 500 ? 'alive' : 'down'
  } catch (error) {
    return error instanceof AnswerStalled ? 'silent' : 'down'
  }
}
