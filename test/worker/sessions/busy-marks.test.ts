import { expect } from 'chai'
import { BusyMarks } from '../../../services/worker/sessions/busy-marks.ts'
import type { Session } from '../../../services/worker/sessions/session.ts'
import { AppError } from '../../../shared/kernel/errors.ts'
import { DEFAULT_TENANT as tenant } from '../../../shared/kernel/tenant.ts'

/** The marks of one worker, and those that the store has. */
function setUp() {
  const stored = new Set<string>()
  const state = { isAway: false }
  const store = {
    add: async ({ id }: { id: string }) => void stored.add(id),
    async delete(ids: readonly string[]) {
      if (state.isAway) throw new AppError('unavailable', 'away')
      for (const id of ids) stored.delete(id)
    },
  }
  const logs = { deleteLogs: async () => {} }
  return { marks: new BusyMarks({ store, logs, owner: () => '7' }), stored, state }
}

const idle = (id: string) => ({ tenant, id, runs: { isEmpty: true }, log: undefined }) as unknown as Session

describe('the marks of sessions that have runs', () => {
  it('are all deleted when a worker ends whose sessions have no runs any more', async () => {
    const { marks, stored } = setUp()
    await Promise.all(Array.from({ length: 1_200 }, (_, n) => marks.add(idle(`s${n}`))))
    expect(stored.size).to.equal(1_200)
    await marks.settled()
    expect(stored.size).to.equal(0)
  })

  it('stay while the store is away, and are deleted with the next ones', async () => {
    const { marks, stored, state } = setUp()
    await marks.add(idle('s1'))
    state.isAway = true
    await marks.settled()
    expect(stored.size).to.equal(1)
    state.isAway = false
    await marks.settled()
    expect(stored.size).to.equal(0)
  })
})
