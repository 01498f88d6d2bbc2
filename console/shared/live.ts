import { signal, type ReadonlySignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { attempts, isReachable } from './client.ts'

/** Changes every ten seconds while samples come: a page that shows more than they have then looks again. */
export const lookAgain = ({ samples }: { readonly samples: readonly { readonly at: number }[] }): number =>
  Math.floor((samples.at(-1)?.at ?? 0) / LOOK_MS)

/** What a stream of samples has brought so far. */
export interface Live<Sample> {
  /** The newest last. */
  readonly samples: readonly Sample[]
  /** Nothing has come for a while: the page shows old figures. */
  readonly isStale: boolean
}

const KEPT = 300
const LOOK_MS = 10_000
const STALE_MS = 7000

/**
 * One stream for the whole page, open as long as anything on it looks. The browser reconnects by itself and says what it saw
 * last, so nothing is missed.
 */
export function liveStream<Sample extends { readonly at: number }>(
  address: string,
): {
  readonly state: ReadonlySignal<Live<Sample>>
  readonly use: () => Live<Sample>
} {
  const state = signal<Live<Sample>>({ samples: [], isStale: false })
  let users = 0
  let source: EventSource | undefined
  let stale: ReturnType<typeof setTimeout> | undefined

  function isLate(): void {
    clearTimeout(stale)
    stale = setTimeout(() => (state.value = { ...state.value, isStale: true }), STALE_MS)
  }

  function open(): void {
    source = new EventSource(address)
    source.addEventListener('sample', (event) => {
      const sample = JSON.parse((event as MessageEvent<string>).data) as Sample
      state.value = { samples: [...state.value.samples, sample].slice(-KEPT), isStale: false }
      if (!isReachable.value) attempts.value++
      isReachable.value = true
      isLate()
    })
    source.addEventListener('error', () => {
      // The browser gives up after an error status, such as one of a proxy.
      if (source?.readyState === EventSource.CLOSED) {
        source = undefined
        setTimeout(() => users > 0 && !source && open(), 3000)
      }
    })
    isLate()
  }

  function close(): void {
    clearTimeout(stale)
    source?.close()
    source = undefined
  }

  return {
    state,
    use() {
      useEffect(() => {
        if (users++ === 0) open()
        return () => {
          if (--users === 0) close()
        }
      }, [])
      return state.value
    },
  }
}
