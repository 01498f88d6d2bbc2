import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { attempts, type Failure } from './client.ts'

/** The state of a page's data: loading, loaded, or failed. */
export type Loaded<Data> =
  | { readonly state: 'loading' }
  | {
      readonly state: 'ready'
      readonly data: Data
      /** Why it could not be reloaded. The previous data stays, and so does what was typed on the page. */
      readonly failure?: Failure
    }
  | { readonly state: 'failed'; readonly failure: Failure }

/** Loads again when a dependency changes, `reload` is called, or the service is tried again; what was loaded last stays visible meanwhile. */
export function useData<Data>(
  load: (signal: AbortSignal) => Promise<Data>,
  dependencies: readonly unknown[] = [],
): Loaded<Data> & { readonly reload: () => void } {
  const [loaded, setLoaded] = useState<Loaded<Data>>({ state: 'loading' })
  const [reloads, setReloads] = useState(0)
  const loadedFor = useRef<readonly unknown[]>(undefined)
  useEffect(() => {
    const controller = new AbortController()
    load(controller.signal).then(
      (data) => {
        loadedFor.current = dependencies
        setLoaded({ state: 'ready', data })
      },
      (failure: Failure) => {
        if (controller.signal.aborted) return
        const isSame = dependencies.every((it, index) => it === loadedFor.current?.[index])
        setLoaded((last) => (last.state === 'ready' && isSame ? { ...last, failure } : { state: 'failed', failure }))
      },
    )
    return () => controller.abort()
  }, [...dependencies, reloads, attempts.value])
  const reload = useCallback(() => setReloads((it) => it + 1), [])
  return { ...loaded, reload }
}

const RELOAD_MS = 3000

/** Reloads every few seconds while something is expected to change, and the page is visible. */
export function useReloading(isOn: boolean, reload: () => void): void {
  useEffect(() => {
    if (!isOn) return
    const reloadVisible = (): void => {
      if (document.visibilityState === 'visible') reload()
    }
    const timer = setInterval(reloadVisible, RELOAD_MS)
    document.addEventListener('visibilitychange', reloadVisible)
    return () => {
      clearInterval(timer)
      document.removeEventListener('visibilitychange', reloadVisible)
    }
  }, [isOn, reload])
}
