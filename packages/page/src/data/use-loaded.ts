/** Loads a value for a component, and loads it again when a session has changed. */
import { useCallback, useEffect, useState } from 'preact/hooks'
import type { PageSource } from './page-source.ts'

interface Loaded<T> {
  /** Null until the first value is loaded. While a new value is loaded, the old one stays. */
  readonly value: T | null
  readonly error: string | null
  reload(): void
}

/**
 * Calls `load` when the component appears. If `key` changes, the old value is dropped and a new one loaded. If `version` changes,
 * the value is loaded again, as by `reload`, and the old one is shown until then.
 */
export function useLoaded<T>(key: string, load: () => Promise<T>, version = ''): Loaded<T> {
  const [state, setState] = useState<{ key: string; value: T | null; error: string | null }>({
    key,
    value: null,
    error: null,
  })
  const [count, setCount] = useState(0)
  useEffect(() => {
    let isCurrent = true
    load().then(
      (value) => isCurrent && setState({ key, value, error: null }),
      (error: Error) => isCurrent && setState({ key, value: null, error: error.message }),
    )
    return () => {
      isCurrent = false
    }
  }, [key, version, count])
  const reload = useCallback(() => setCount((before) => before + 1), [])
  return state.key === key ? { ...state, reload } : { value: null, error: null, reload }
}

/** Calls `reload` whenever the log of session `id` changes; with null as `id`, when any session or the list has changed. */
export function useSessionChanges(source: PageSource, id: string | null, reload: () => void): void {
  useEffect(
    () =>
      source.listen((changed) => {
        if (id === null || changed === id) reload()
      }),
    [source, id, reload],
  )
}
