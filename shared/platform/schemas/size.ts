import { escapePointer } from '../../kernel/json.ts'

/** Upper limits of a JSON value. `nodes` counts objects and arrays, `values` everything, `bytes` UTF-8 without escapes. */
export type SizeLimits = { bytes: number; depth: number; nodes: number; values: number }

/** The limit that is broken, or `kind` for something that is not JSON. `path` is the JSON pointer of one offending place. */
export type Excess = { path: string; breaks: keyof SizeLimits | 'kind' }

type Entry = { value: object; depth: number; key: string | number; parent: Entry | undefined }

/** The first limit that a value breaks. Reads hardly more than the limits allow, and needs no stack. */
export function findExcess(root: unknown, limits: SizeLimits): Excess | undefined {
  const meter = new Meter(limits)
  meter.add(root, '', undefined)
  for (let entry = meter.pending.pop(); entry && !meter.excess; entry = meter.pending.pop()) meter.readMembers(entry)
  return meter.excess
}

class Meter {
  readonly pending: Entry[] = []
  excess: Excess | undefined
  readonly #limits: SizeLimits
  #bytes = 0
  #nodes = 0
  #values = 0

  constructor(limits: SizeLimits) {
    this.#limits = limits
  }

  readMembers(entry: Entry): void {
    const { value } = entry
    if (Array.isArray(value)) {
      if (this.#values + value.length > this.#limits.values) this.excess = { path: '', breaks: 'values' }
      for (let at = 0; at < value.length && !this.excess; at++) this.add(value[at], at, entry)
      return
    }
    for (const key in value) {
      if (this.excess) return
      this.#bytes += Buffer.byteLength(key) + 3
      this.add((value as Record<string, unknown>)[key], key, entry)
    }
  }

  add(value: unknown, key: string | number, parent: Entry | undefined): void {
    this.#values++
    this.#bytes += typeof value === 'string' ? Buffer.byteLength(value) + 3 : 2
    if (typeof value === 'object' && value !== null) this.#open({ value, depth: (parent?.depth ?? 0) + 1, key, parent })
    if (typeof value === 'function' || typeof value === 'symbol' || typeof value === 'bigint') {
      this.excess = { path: parent ? `${pathOf(parent)}/${escapePointer(String(key))}` : '', breaks: 'kind' }
    }
    if (this.#bytes > this.#limits.bytes) this.excess ??= { path: '', breaks: 'bytes' }
    if (this.#values > this.#limits.values) this.excess ??= { path: '', breaks: 'values' }
  }

  #open(entry: Entry): void {
    this.#nodes++
    this.pending.push(entry)
    if (entry.depth > this.#limits.depth) this.excess ??= { path: pathOf(entry), breaks: 'depth' }
    if (this.#nodes > this.#limits.nodes) this.excess ??= { path: '', breaks: 'nodes' }
  }
}

function pathOf({ key, parent }: Entry): string {
  const keys: (string | number)[] = []
  for (let at: Entry | undefined = parent, own = key; at; own = at.key, at = at.parent) keys.unshift(own)
  return keys.map((part) => `/${escapePointer(String(part))}`).join('')
}
