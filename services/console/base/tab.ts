let known = new Map<() => unknown, unknown>()

/**
 * A part of what this tab knows, made when it is first asked for. All of it stands in one object, which is dropped when the person signs
 * out: no module of the console keeps anything that changes elsewhere (test/console/base/tab.test.ts).
 */
export function ofTab<T>(make: () => T): () => T {
  return () => {
    if (!known.has(make)) known.set(make, make())
    return known.get(make) as T
  }
}

/** Ends the requests, streams and watches of the tab (`leaving`), and drops all that it knows. */
export function forgetTab(): void {
  leaving().abort()
  known = new Map()
}

/** It is aborted when the person leaves. What goes on by itself ends with it. */
export const leaving = ofTab(() => new AbortController())
