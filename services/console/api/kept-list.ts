import { useEffect, useMemo } from 'preact/hooks'
import { kept } from './engine.ts'
import type { Resource } from './resource.ts'

const MOST_KEPT = 20

/**
 * Keeps the entries of a list when the reader leaves the page. When the reader returns to this address, they are shown while the list is read
 * again. Only for rows without actions, because kept rows may be out of date.
 */
export function useKept<T>(state: Resource<T>['state'], path: string): void {
  const place = `${location.pathname}${location.search} ${path}`
  useMemo(() => {
    const data = kept().get(place)
    if (data !== undefined) state.value = { data: data as T, error: undefined, isLoading: true }
  }, [state])
  useEffect(() => {
    const all = kept()
    return () => {
      const { data } = state.peek()
      if (data === undefined) return
      all.delete(place)
      all.set(place, data)
      if (all.size > MOST_KEPT) all.delete(all.keys().next().value ?? '')
    }
  }, [state, place])
}
