import type { Collection, Store } from '../../shared/platform/store/port.ts'

type Method = keyof Collection

const WRITES: ReadonlySet<Method> = new Set([
  'insert',
  'insertMissing',
  'replaceIfVersion',
  'update',
  'delete',
  'deleteMany',
])

export const isRead = (method: Method): boolean => !WRITES.has(method)

/** Called in place of an operation of a store; `act` is the operation. */
export type Around = <T>(method: Method, act: () => Promise<T>, args: readonly unknown[]) => Promise<T>

/** The store, with its operations inside `around`. */
export function aroundStore(store: Store, around: Around): Store {
  const wrap = (collection: Collection): Collection => ({
    get: (...args) => around('get', () => collection.get(...args), args),
    insert: (...args) => around('insert', () => collection.insert(...args), args),
    insertMissing: (...args) => around('insertMissing', () => collection.insertMissing(...args), args),
    replaceIfVersion: (...args) => around('replaceIfVersion', () => collection.replaceIfVersion(...args), args),
    update: (...args) => around('update', () => collection.update(...args), args),
    delete: (...args) => around('delete', () => collection.delete(...args), args),
    deleteMany: (...args) => around('deleteMany', () => collection.deleteMany(...args), args),
    page: (...args) => around('page', () => collection.page(...args), args),
    nextValue: (...args) => around('nextValue', () => collection.nextValue(...args), args),
    total: (...args) => around('total', () => collection.total(...args), args),
  })
  return {
    collection: (spec) => wrap(store.collection(spec)),
    awayMs: () => store.awayMs(),
    close: () => store.close(),
  }
}
