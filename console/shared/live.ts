import { signal, type ReadonlySignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { attempts, isReachable, isSignedOut, send } from './client.ts'

/** Changes every ten seconds while samples arrive: a page with other data then reloads it. */
export const reloadKey = ({ samples }: { readonly samples: readonly { readonly at: number }[] }): number =>
  Math.floor((samples.at(-1)?.at ?? 0) / RELOAD_MS)

/** The samples that a stream has sent so far. */
export interface Live<Sample> {
  /** The newest last. */
  readonly samples: readonly Sample[]
  /** Nothing has arrived for a while: the page shows old figures. */
  readonly isStale: boolean
}

const KEPT = 300
const RELOAD_MS = 10_000
const STALE_MS = 7000
const RETRY_MS = 3000

/** A tab's request to the others for their samples. */
const SAMPLES_REQUEST = 'samples?'

/**
 * One stream for all tabs of a browser, open as long as a visible part uses it: a browser has only six connections to a
 * service, and a stream occupies one. The tab that holds a lock has the stream and passes the samples on; when it is
 * hidden or closed, the next tab gets the lock. Tabs with another `scope` do not share.
 */
export function liveStream<Sample extends { readonly at: number }>(
  address: string,
  scope: () => string = () => '',
): {
  readonly state: ReadonlySignal<Live<Sample>>
  readonly use: () => Live<Sample>
} {
  const state = signal<Live<Sample>>({ samples: [], isStale: false })
  let users = 0
  let leave: (() => void) | undefined
  let stale: ReturnType<typeof setTimeout> | undefined

  function isLate(): void {
    clearTimeout(stale)
    stale = setTimeout(() => (state.value = { ...state.value, isStale: true }), STALE_MS)
  }

  /** A stream begins with samples that the page may have already, because another tab had the stream before. */
  function take(arrived: readonly Sample[]): void {
    const last = state.value.samples.at(-1)?.at ?? 0
    const newer = arrived.filter(({ at }) => at > last)
    state.value = { samples: [...state.value.samples, ...newer].slice(-KEPT), isStale: false }
    if (!isReachable.value) attempts.value++
    isReachable.value = true
    isLate()
  }

  /** Returns a function that ends it. */
  function join(): () => void {
    const left = new AbortController()
    const name = `${address} ${scope()}`
    const others = new BroadcastChannel(name)
    let hasStream = false
    others.addEventListener('message', ({ data }: MessageEvent<readonly Sample[] | typeof SAMPLES_REQUEST>) => {
      if (data !== SAMPLES_REQUEST) take(data)
      else if (hasStream && !state.value.isStale) others.postMessage(state.value.samples)
    })
    others.postMessage(SAMPLES_REQUEST)
    const lead = (): Promise<void> => {
      hasStream = true
      return follow(address, left.signal, (data) => {
        const samples = [JSON.parse(data) as Sample]
        take(samples)
        others.postMessage(samples)
      })
    }
    // Browsers have locks for pages over TLS or from this machine. Elsewhere each visible tab has a stream of its own.
    const locks = navigator.locks as LockManager | undefined
    if (locks) locks.request(name, { signal: left.signal }, lead).catch(() => {})
    else void lead()
    isLate()
    return () => {
      left.abort()
      others.close()
      clearTimeout(stale)
    }
  }

  function update(): void {
    const isNeeded = users > 0 && document.visibilityState === 'visible' && !isSignedOut.value
    if (isNeeded) leave ??= join()
    else {
      leave?.()
      leave = undefined
    }
  }

  document.addEventListener('visibilitychange', update)
  isSignedOut.subscribe(update)
  return {
    state,
    use() {
      useEffect(() => {
        users++
        update()
        return () => {
          users--
          update()
        }
      }, [])
      return state.value
    },
  }
}

/**
 * Follows a stream until `left`. The browser reconnects automatically and sends the id of the last event, so nothing is
 * missed.
 */
function follow(address: string, left: AbortSignal, take: (data: string) => void): Promise<void> {
  return new Promise((resolve) => {
    let source: EventSource | undefined
    let retry: ReturnType<typeof setTimeout> | undefined

    function open(): void {
      source = new EventSource(address)
      source.addEventListener('sample', ({ data }: MessageEvent<string>) => take(data))
      source.addEventListener('error', () => {
        if (source?.readyState === EventSource.CLOSED) void checkSession()
      })
    }

    /**
     * The browser gives up after an error status and does not report which. If the session has ended, the page finds
     * out.
     */
    async function checkSession(): Promise<void> {
      await send('/console/api/session', { method: 'GET', signal: left }).catch(() => {})
      if (!left.aborted) retry = setTimeout(open, RETRY_MS)
    }

    left.addEventListener('abort', () => {
      clearTimeout(retry)
      source?.close()
      resolve()
    })
    open()
  })
}
