/** Loads a value for a component, and loads it again when a session has changed. */
import { useCallback, useEffect, useState } from 'preact/hooks'
import type { PageSource } from './page-source.ts'

export interface Loaded<T> {
  /** Null until it is loaded. The old value stays while a new one is loaded. */
  readonly value: T | null
  readonly error: string | null
  reload(): void
}

/** `key`: what the value is of; another key forgets the old value. `version`: another one loads it again, as `reload` does. */
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

/** Calls `reload` when the session `id` changes; with null, when anything does. */
export function useChanges(source: PageSource, id: string | null, reload: () => void): void {
  useEffect(
    () =>
      source.listen((changed) => {
        if (id === null || changed === id) reload()
      }),
    [source, id, reload],
  )
}
