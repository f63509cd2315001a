import type { Collection, CollectionSpec, Store } from '../../shared/platform/store/port.ts'
import { storeUnavailable } from '../../shared/platform/store/unavailable.ts'
import { MemoryCollection } from './memory-store.ts'
import type { Owner, Time } from './time.ts'

/** As the store of the product: by then an operation is answered, or fails and may be carried out all the same. */
const ANSWER_MS = 2_800
const READS = new Set<keyof Collection>(['get', 'page', 'nextValue', 'total'])

/** The database of a simulated cluster, which is slow or stands still as the faults say. What it has received it carries out, also for those who have left. */
export class FaultyStore {
  readonly #time: Time
  readonly #collections = new Map<string, MemoryCollection>()
  #isStalled = false
  #held: (() => void)[] = []
  readonly usualMs = 1
  /** The longest that a write takes, in milliseconds. */
  slowMs: number = this.usualMs

  constructor(time: Time) {
    this.#time = time
  }

  /** The store as this process reaches it. */
  connect(owner: Owner): Store {
    return {
      collection: (spec) => this.#collectionOf(spec, owner),
      awayMs: () => 0,
      close: async () => {},
    }
  }

  /** A store that stands still carries out nothing. */
  set isStalled(isStalled: boolean) {
    this.#isStalled = isStalled
    if (!isStalled) for (const act of this.#held.splice(0)) act()
  }

  #collectionOf(spec: CollectionSpec, owner: Owner): Collection {
    const collection = this.#collections.get(spec.name) ?? new MemoryCollection(spec)
    this.#collections.set(spec.name, collection)
    const command =
      (name: keyof MemoryCollection) =>
      (...args: unknown[]) =>
        this.#ask(owner, {
          isWrite: !READS.has(name),
          act: () => (collection[name] as (...args: unknown[]) => unknown).apply(collection, args),
        })
    const names = [
      'get',
      'insert',
      'insertMissing',
      'replaceIfVersion',
      'update',
      'delete',
      'deleteMany',
      'page',
      'nextValue',
    ] as const
    return Object.fromEntries(names.map((name) => [name, command(name)])) as unknown as Collection
  }

  #ask(owner: Owner, { isWrite, act }: { isWrite: boolean; act: () => unknown }): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const late = this.#time.after(owner, ANSWER_MS, () => reject(storeUnavailable('no answer in time')))
    const answer = () => {
      const value = act()
      this.#time.after(owner, this.#time.random.between(0.1, this.usualMs), () => {
        this.#time.cancel(late)
        resolve(value)
      })
    }
    const arrive = () => (this.#isStalled ? this.#held.push(answer) : answer())
    this.#time.after(
      this.#time.world,
      this.#time.random.between(0.1, isWrite ? this.slowMs : this.usualMs),
      () => void arrive(),
    )
    return promise
  }
}
