import { useCallback, useEffect, useState } from 'preact/hooks'
import { attempts, type Failure } from './client.ts'

/** What a page shows while it loads, when it has its data, and when that failed. */
export type Loaded<Data> =
  | { readonly state: 'loading' }
  | { readonly state: 'ready'; readonly data: Data }
  | { readonly state: 'failed'; readonly failure: Failure }

/** Loads again when a dependency changes, `reload` is called, or the service is tried again; what was loaded last stays visible meanwhile. */
export function useData<Data>(
  load: (signal: AbortSignal) => Promise<Data>,
  dependencies: readonly unknown[] = [],
): Loaded<Data> & { readonly reload: () => void } {
  const [loaded, setLoaded] = useState<Loaded<Data>>({ state: 'loading' })
  const [reloads, setReloads] = useState(0)
  useEffect(() => {
    const controller = new AbortController()
    load(controller.signal).then(
      (data) => setLoaded({ state: 'ready', data }),
      (failure: Failure) => {
        if (!controller.signal.aborted) setLoaded({ state: 'failed', failure })
      },
    )
    return () => controller.abort()
  }, [...dependencies, reloads, attempts.value])
  const reload = useCallback(() => setReloads((it) => it + 1), [])
  return { ...loaded, reload }
}
