import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { COLLECTIONS } from '../../../services/wiring/collections.ts'
import { DEFAULT_TENANT as TENANT } from '../../../shared/kernel/tenant.ts'
import { openSqliteStore } from '../../../shared/platform/store/sqlite/sqlite.ts'
import type { Dispatch, DispatchEnd, DispatchStore } from '../../../shared/work/flows/port.ts'
import { StoredDispatches } from '../../../shared/work/flows/store/dispatches.ts'
import { INPUT, newDispatch, OK, OUTPUT, START } from '../../contract/dispatch-setup.ts'

/** A history in SQLite for the tests of one `describe`, with a clock that a test can set. */
export function useHistory() {
  const clock = { ms: START }
  const now = () => new Date(clock.ms)
  const cleanUps: (() => Promise<unknown>)[] = []
  let dispatches: DispatchStore
  before(async () => {
    const dir = await mkdtemp(join(tmpdir(), 'agent-engine-history-'))
    const store = await openSqliteStore({
      file: join(dir, 'history.db'),
      collections: COLLECTIONS,
      now: () => clock.ms,
    })
    cleanUps.push(
      () => store.close(),
      () => rm(dir, { recursive: true }),
    )
    dispatches = new StoredDispatches(store, { now })
  })
  after(async () => {
    for (const cleanUp of cleanUps) await cleanUp()
  })
  return {
    clock,
    now,
    get dispatches() {
      return dispatches
    },
    async queue(more: Partial<Dispatch> = {}): Promise<Dispatch> {
      const dispatch = newDispatch(clock.ms, more)
      await dispatches.create(TENANT, dispatch, INPUT)
      return dispatch
    },
    async end({ trace_id }: Dispatch, result: DispatchEnd = OK, output = OUTPUT): Promise<Dispatch> {
      await dispatches.begin(TENANT, trace_id, 7)
      clock.ms += 2_000
      const ended = await dispatches.end(TENANT, trace_id, { executor: 7, result, output })
      if (!ended) throw new Error('it did not end')
      return ended
    },
  }
}
