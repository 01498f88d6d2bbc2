import type { Admission } from './admission.ts'
import type { AlarmClock } from '../shared/clock.ts'
import type { LiveFeed, Sample, WaitFigures } from './live.ts'

const SAMPLE_EVERY_MS = 2000
/** Ten minutes. */
const KEPT_SAMPLES = 300
/** Per lane; enough for percentiles. */
const KEPT_WAITS = 200
const WAITS_MS = 5 * 60_000

interface Wait {
  readonly at: number
  readonly ms: number
}

/** Polls the lanes every two seconds. */
export function liveFeed(
  admission: Pick<Admission, 'status'>,
  clock: AlarmClock,
  replicas: () => number = () => 1,
): LiveFeed {
  const startedAt = clock.now()
  const start = startedAt.toString(36)
  const kept: Sample[] = []
  const listeners = new Map<(sample: Sample) => void, () => void>()
  const waits = new Map<string, Wait[]>()
  const admitted = new Map<string, number>()
  let count = 0
  let isClosed = false
  let cancel = clock.after(SAMPLE_EVERY_MS, () => void poll())

  async function poll(): Promise<void> {
    // Redis may be unreachable for a while. The next poll tries again.
    const lanes = await admission.status().catch(() => undefined)
    if (isClosed) return
    if (lanes) {
      // A lane may have left the catalog.
      for (const lane of admitted.keys()) if (!lanes.has(lane)) admitted.delete(lane)
      const sample = {
        id: `${start}-${++count}`,
        at: clock.now(),
        lanes,
        waits: figures(),
        admitted: new Map(admitted),
      }
      kept.push(sample)
      if (kept.length > KEPT_SAMPLES) kept.shift()
      for (const take of listeners.keys()) take(sample)
    }
    cancel = clock.after(SAMPLE_EVERY_MS, () => void poll())
  }

  function figures(): Map<string, WaitFigures> {
    const now = clock.now()
    const since = now - WAITS_MS
    const all = new Map<string, WaitFigures>()
    for (const [lane, list] of waits) {
      const recent = list.filter(({ at }) => at >= since)
      if (recent.length === 0) waits.delete(lane)
      else {
        waits.set(lane, recent)
        const sorted = recent.map(({ ms }) => ms).sort((one, other) => one - other)
        const at = (share: number): number =>
          sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
        // A busy lane has more waits in the period than are kept.
        const from = recent.length < KEPT_WAITS ? Math.max(since, startedAt) : (recent[0]?.at ?? since)
        const minutes = Math.max(SAMPLE_EVERY_MS, now - from) / 60_000
        all.set(lane, { perMinute: (recent.length * replicas()) / minutes, p50: at(0.5), p95: at(0.95) })
      }
    }
    return all
  }

  return {
    since(id) {
      const place = id === undefined ? -1 : kept.findIndex((sample) => sample.id === id)
      return kept.slice(place + 1)
    },
    subscribe(take, closed) {
      if (isClosed) {
        closed()
        return () => {}
      }
      listeners.set(take, closed)
      return () => void listeners.delete(take)
    },
    admitted(lane, ms) {
      admitted.set(lane, (admitted.get(lane) ?? 0) + 1)
      const list = waits.get(lane) ?? []
      list.push({ at: clock.now(), ms })
      if (list.length > KEPT_WAITS) list.shift()
      waits.set(lane, list)
    },
    close() {
      isClosed = true
      cancel()
      for (const closed of listeners.values()) closed()
      listeners.clear()
    },
  }
}
