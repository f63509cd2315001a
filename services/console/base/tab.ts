let known = new Map<() => unknown, unknown>()

/**
 * A part of this tab's state, created at its first use. The whole state is in one object, which is dropped when the person signs out. No
 * module of the console keeps changing data anywhere else (test/console/base/tab.test.ts).
 */
export function ofTab<T>(make: () => T): () => T {
  return () => {
    if (!known.has(make)) known.set(make, make())
    return known.get(make) as T
  }
}

/** Ends the requests, streams and watches of the tab (`leaving`), and drops its state. */
export function forgetTab(): void {
  leaving().abort()
  known = new Map()
}

/** Aborted when the person signs out. Background work ends with it. */
export const leaving = ofTab(() => new AbortController())
