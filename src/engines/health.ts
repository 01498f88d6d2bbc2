import type { EngineAddress } from './address.ts'

const INTERVAL_MS = 5000
const INTERVAL_DOWN_MS = 1000
const PROBE_TIMEOUT_MS = 5000
const FAILURES_UNTIL_DOWN = 2

/**
 * Probes an address regularly. Any status below 500 counts as healthy: not every server has GET /models, but
 * one that answers 404 is alive. Returns a function that stops the probes.
 */
export function watchHealth(
  address: EngineAddress,
  headers: Record<string, string>,
  changed: (healthy: boolean) => void,
): () => void {
  let failures = 0
  let stopped = false
  let timer: NodeJS.Timeout

  async function probe(): Promise<void> {
    const alive = await answers(address, headers)
    if (stopped) return
    failures = alive ? 0 : failures + 1
    const healthy = alive || (address.healthy && failures < FAILURES_UNTIL_DOWN)
    if (healthy !== address.healthy) {
      address.healthy = healthy
      changed(healthy)
    }
    // Probe again soon after a failure.
    timer = setTimeout(() => void probe(), failures === 0 ? INTERVAL_MS : INTERVAL_DOWN_MS)
    timer.unref()
  }

  void probe()
  return () => {
    stopped = true
    clearTimeout(timer)
  }
}

async function answers(address: EngineAddress, headers: Record<string, string>): Promise<boolean> {
  try {
    const response = await address.pool.request({
      method: 'GET',
      path: `${address.prefix}/models`,
      headers,
      headersTimeout: PROBE_TIMEOUT_MS,
      bodyTimeout: PROBE_TIMEOUT_MS,
    })
    await response.body.dump({ limit: 65_536 })
    return response.statusCode < 500
  } catch {
    return false
  }
}
