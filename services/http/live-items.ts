/** The place of an item, until it is left. */
export interface Place {
  /** Removes the item. A second call has no effect. */
  leave(): void
}

class Holder<T> implements Place {
  readonly #holders: Set<Holder<T>>
  /** `undefined` once it is removed. */
  item: T | undefined

  constructor(item: T, holders: Set<Holder<T>>) {
    this.item = item
    this.#holders = holders
    holders.add(this)
  }

  leave(): void {
    this.item = undefined
    this.#holders.delete(this)
  }
}

/**
 * The items that are live now, such as open requests, in the order in which they were added.
 *
 * A `Set` would keep the removed ones in memory. V8 links each hash table that a `Set` has outgrown to the one that replaces it, also when
 * the table is garbage. As soon as one of these tables is in the old generation, all later ones and their items survive each garbage
 * collection of the young generation, until the next full one. Here such a table only has empty holders.
 */
export class LiveItems<T extends object> implements Iterable<T> {
  readonly #holders = new Set<Holder<T>>()

  get size(): number {
    return this.#holders.size
  }

  add(item: T): Place {
    return new Holder(item, this.#holders)
  }

  *[Symbol.iterator](): Generator<T, void, undefined> {
    for (const { item } of this.#holders) if (item) yield item
  }
}
