import { useRef } from 'preact/hooks'
import { count, milliseconds } from '../../shared/format.ts'
import { live, type Load } from '../live.ts'

/**
 * What is known about a request that has no answer yet. Nothing is sent on its own connection while it is queued, so
 * this is derived from the load of its model.
 */
export function Waiting({ model, is }: { model: string; is: boolean }) {
  const { samples } = live.use()
  const since = useRef<number>(undefined)
  if (is) since.current ??= samples.at(-1)?.at
  else since.current = undefined
  const from = since.current ?? Infinity
  const loads = samples
    .filter(({ at }) => at >= from)
    .flatMap(({ models }) => models.filter((it) => it.model === model))
  const place = placeOf(loads)
  const rate = loads.at(-1)?.admitted_per_minute ?? null
  return (
    <p class="soft small" role="status">
      {!is
        ? null
        : place === 0
          ? 'Waiting for the answer to begin …'
          : `Waiting in the queue: ${aheadText(place - 1)}.${rate === null ? '' : ` At the pace of the last minutes, that takes ${lengthText((place / rate) * 60_000)}.`}`}
    </p>
  )
}

/** Follows the load before a request is sent: its place in the queue is counted from the sample before it. */
export function FollowedLoad() {
  live.use()
  return null
}

/**
 * The worst possible place in the queue of a request that was sent after the first of these samples; 0 if it does not
 * seem to wait. A place only improves, by every admission, and it is never beyond the end of the queue.
 */
function placeOf(loads: readonly Load[]): number {
  // If the lane was free when the request was sent, the next sample shows its place.
  const [first, ...later] = loads[0] && isFree(loads[0]) ? loads.slice(1) : loads
  if (!first) return 0
  let place = first === loads[0] ? first.queue_depth + 1 : first.queue_depth
  let admitted = first.admitted_requests
  for (const load of later) {
    const left = place - Math.max(0, load.admitted_requests - admitted)
    place = Math.max(0, Math.min(load.queue_depth, left))
    admitted = load.admitted_requests
  }
  return place
}

const isFree = (load: Load): boolean => load.queue_depth === 0 && load.in_flight_requests < load.max_concurrent_requests

const aheadText = (ahead: number): string =>
  ahead === 0 ? 'yours is next' : `about ${count(ahead)} ${ahead === 1 ? 'request is' : 'requests are'} ahead of yours`

const lengthText = (ms: number): string => (ms < 1000 ? 'less than a second' : `about ${milliseconds(ms)}`)
