import { DEFAULT_TENANT as TENANT } from '../../../shared/kernel/tenant.ts'
import type { Dispatch, DispatchEnd, DispatchStore } from '../../../shared/work/flows/port.ts'
import { StoredDispatches } from '../../../shared/work/flows/store/dispatches.ts'
import { INPUT, newDispatch, OK, OUTPUT, START } from '../../contract/dispatch-setup.ts'
import { useTestStore } from '../../support/test-store.ts'

/** A history in SQLite for the tests of one `describe`, with a clock that a test can set. */
export function useHistory() {
  const clock = { ms: START }
  const now = () => new Date(clock.ms)
  const opened = useTestStore({ now: () => clock.ms })
  let dispatches: DispatchStore
  before(() => {
    dispatches = new StoredDispatches(opened.store, { now })
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
