// What a function looks at, counted: the same on every machine, where a time is not.

/** A text that counts the characters which are looked at. `text` is for functions that use no other methods than these. */
export class CountedText extends String {
  looked = 0

  get text(): string {
    return this as unknown as string
  }

  override charCodeAt(at: number): number {
    this.looked++
    return super.charCodeAt(at)
  }

  override indexOf(search: string, from = 0): number {
    const at = super.indexOf(search, from)
    this.looked += (at < 0 ? this.length : at + search.length) - from
    return at
  }

  override slice(from: number, to?: number): string {
    const part = super.slice(from, to)
    this.looked += part.length
    return part
  }
}

/** `value` counts the reads of its properties, and of those of all that is in it. */
export type Counted<T> = { value: T; reads: number }

export function countReads<T extends object>(original: T): Counted<T> {
  const proxies = new Map<object, object>()
  const wrap = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null) return value
    const known = proxies.get(value)
    if (known) return known
    const proxy = new Proxy(value, {
      get(target, key) {
        counted.reads++
        return wrap(Reflect.get(target, key))
      },
    })
    proxies.set(value, proxy)
    return proxy
  }
  const counted = { value: original, reads: 0 }
  counted.value = wrap(original) as T
  return counted
}

/** How often the event loop turns while `work` goes on: a work in one piece has none. */
export async function countTurns(work: () => Promise<unknown>): Promise<number> {
  let turns = 0
  let isDone = false
  const turn = () => {
    turns++
    if (!isDone) setImmediate(turn)
  }
  setImmediate(turn)
  try {
    await work()
  } finally {
    isDone = true
  }
  return turns
}
