/** A holder of an item; `item` is `undefined` once it is removed. */
type Place<T> = { item: T | undefined }

/**
 * The items that are live now, such as open requests, in the order in which they were added.
 *
 * A `Set` would keep the removed ones in memory. V8 links each hash table that a `Set` has outgrown to the one that replaces it, also when
 * the table is garbage. As soon as one of these tables is in the old generation, all later ones and their items survive each garbage
 * collection of the young generation, until the next full one. Here such a table only has empty holders.
 */
export class LiveItems<T extends object> implements Iterable<T> {
  readonly #places = new Set<Place<T>>()

  get size(): number {
    return this.#places.size
  }

  /** Returns a function that removes the item; a second call of it has no effect. */
  add(item: T): () => void {
    const place: Place<T> = { item }
    this.#places.add(place)
    return () => {
      place.item = undefined
      this.#places.delete(place)
    }
  }

  *[Symbol.iterator](): Generator<T, void, undefined> {
    for (const { item } of this.#places) if (item) yield item
  }
}
