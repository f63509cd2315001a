type Store = 'localStorage' | 'sessionStorage'

/** Data that the browser keeps across a reload. If its settings forbid this, there is none. */
export function kept(store: Store, name: string): string | undefined {
  try {
    return globalThis[store].getItem(name) ?? undefined
  } catch {
    return undefined
  }
}

/** `undefined` removes it. */
export function keep(store: Store, name: string, value: string | undefined): void {
  try {
    if (value === undefined) globalThis[store].removeItem(name)
    else globalThis[store].setItem(name, value)
  } catch {
    // See `kept`.
  }
}
