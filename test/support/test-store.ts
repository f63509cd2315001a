import { join } from 'node:path'
import { COLLECTIONS } from '../../services/wiring/collections.ts'
import type { CollectionSpec, Store } from '../../shared/platform/store/port.ts'
import { openSqliteStore } from '../../shared/platform/store/sqlite/sqlite.ts'
import { useFixture } from './fixture.ts'
import { makeTempFolder } from './temp-folder.ts'

type Options = { collections?: readonly CollectionSpec[]; now?: () => number }

/** Opens an empty store in SQLite. `await using` closes and deletes it. */
export async function openTestStore({ collections = COLLECTIONS, now }: Options = {}) {
  const folder = await makeTempFolder()
  const store = await openSqliteStore({ file: join(folder.path, 'test.db'), collections, ...(now && { now }) })
  return {
    store,
    async [Symbol.asyncDispose]() {
      await store.close()
      await folder[Symbol.asyncDispose]()
    },
  }
}

/** A store for the tests of the enclosing `describe`, or with `perTest` one for each of them. See `useFixture` for when it is there. */
export function useTestStore({ perTest = false, ...options }: Options & { perTest?: boolean } = {}) {
  const opened = useFixture(() => openTestStore(options), { perTest })
  return {
    get store(): Store {
      return opened().store
    },
  }
}
