import type { Collection, Store } from '../../shared/platform/store/port.ts'

type Method = keyof Collection

/** The store, with a list of the operations on it, and one that can be made to fail before it happens. */
export function watchStore(store: Store) {
  const operations: string[] = []
  const writes: string[] = []
  let failing = ''
  const collection: Store['collection'] = (spec) => {
    const real = store.collection(spec)
    const watch = (method: Method, name: string) =>
      async function (...args: unknown[]) {
        const operation = `${name} ${spec.name}`
        if (operation === failing) throw new Error('stopped')
        operations.push(operation)
        if (!['get', 'page', 'nextValue', 'total'].includes(name)) writes.push(operation)
        return (real[method] as (...all: unknown[]) => Promise<never>)(...args)
      }
    return {
      get: watch('get', 'get'),
      insert: watch('insert', 'insert'),
      insertMissing: watch('insertMissing', 'insertMissing'),
      replaceIfVersion: watch('replaceIfVersion', 'replace'),
      update: watch('update', 'update'),
      delete: watch('delete', 'delete'),
      deleteMany: watch('deleteMany', 'deleteMany'),
      page: watch('page', 'page'),
      nextValue: watch('nextValue', 'nextValue'),
      total: watch('total', 'total'),
    }
  }
  const watched: Store = { collection, awayMs: () => store.awayMs(), close: () => store.close() }
  return { watched, operations, writes, failAt: (operation: string) => void (failing = operation) }
}
