import { expect } from 'chai'
import { RunRecovery, type RunRecoveryDeps } from '../../../../shared/cluster/relay/gateway/run-recovery.ts'
import { AppError, notFound } from '../../../../shared/kernel/errors.ts'
import { DEFAULT_TENANT as TENANT } from '../../../../shared/kernel/tenant.ts'
import { statusOf } from '../../../support/broker-answers.ts'
import { SILENT_LOG } from '../../../support/silent-log.ts'
import { until } from '../../../support/until.ts'

const RUN = `run_${(7).toString(16).padStart(8, '0')}${'0'.repeat(24)}`

type Changes = Partial<RunRecoveryDeps> & { left?: string[] }

/** Worker 7 has died and has left these sessions; worker 8 opens them. `moved` holds where their runs are. */
function setUp({ left = ['s1', 's2'], ...changes }: Changes = {}) {
  const marks = new Map(left.map((id) => [id, { id: `mark ${id}`, tenant: TENANT, session_id: id }]))
  const opened: string[] = []
  const moved = new Map<string, number>()
  const recovery = new RunRecovery({
    busy: {
      nextOwner: async (after) => (after === undefined && marks.size > 0 ? '7' : undefined),
      of: async (owner, limit) => (owner === '7' ? [...marks.values()].slice(0, limit) : []),
      delete: async (ids) => {
        for (const [id, mark] of marks) if (ids.includes(mark.id)) marks.delete(id)
      },
    },
    movedRuns: { find: async (_tenant, runId) => moved.get(runId) },
    isMember: async (epoch) => epoch !== 7,
    isDraining: () => false,
    rank: () => 0,
    openTogether: async () => [],
    async open({ id }) {
      opened.push(id)
      moved.set(RUN, 8)
      return 8
    },
    isStored: async () => false,
    isRebuilt: async () => true,
    log: SILENT_LOG,
    ...changes,
  })
  return { recovery, opened, moved, left: () => [...marks.keys()] }
}

describe('the recovery of runs', () => {
  it('D32.8: has each session of a dead worker opened once, however often it is asked, and forgets that it had runs', async () => {
    const { recovery, opened, left } = setUp()
    await Promise.all([recovery.recover(7), recovery.recover(7)])
    expect([opened.toSorted(), left()]).to.deep.equal([['s1', 's2'], []])
  })

  it('D32.8: sessions that could be opened together are not opened one by one, and are forgotten with the others', async () => {
    const asked: unknown[] = []
    const { recovery, opened, left } = setUp({
      left: ['s1', 's2', 's3'],
      async openTogether(lost, sessions) {
        asked.push(
          lost,
          sessions.map(({ id }) => id),
        )
        return sessions.filter(({ id }) => id !== 's2')
      },
    })
    expect(await recovery.recover(7)).to.equal(true)
    expect([asked, opened, left()]).to.deep.equal([[7, ['s1', 's2', 's3']], ['s2'], []])
  })

  it('D32.8: a session that cannot be opened yet is tried again, and one that is gone is forgotten', async () => {
    const tries: string[] = []
    const open = async ({ id }: { id: string }) => {
      tries.push(id)
      if (id === 's1') throw notFound('gone')
      if (tries.filter((each) => each === id).length === 1) throw new AppError('unavailable', 'full')
      return 8
    }
    const { recovery, left } = setUp({ open })
    await recovery.recover(7)
    expect([tries.toSorted(), left()]).to.deep.equal([['s1', 's2', 's2'], []])
  })

  it('D32.8: a session that is stored is not gone, though the worker that was to open it does not have it', async () => {
    const answers = [notFound('evicted'), 8]
    const open = async () => {
      const answer = answers.shift()
      if (typeof answer !== 'number') throw answer
      return answer
    }
    const { recovery, left } = setUp({ left: ['s1'], open, isStored: async () => true })
    expect(await recovery.recover(7)).to.equal(true)
    expect([left(), answers]).to.deep.equal([[], []])
  })

  it('D32.8: sessions that cannot be opened yet keep none of the others waiting', async () => {
    const ids = Array.from({ length: 250 }, (_, n) => `s${n}`)
    const [refused, opened] = [new Set(ids.slice(0, 200)), new Set<string>()]
    let openedBefore = 0
    const open = async ({ id }: { id: string }) => {
      if (refused.delete(id)) throw new AppError('unavailable', 'full')
      if (ids.indexOf(id) < 200) openedBefore ||= opened.size
      opened.add(id)
      return 8
    }
    const { recovery, left } = setUp({ left: ids, open })
    await recovery.recover(7)
    expect([openedBefore, left()]).to.deep.equal([50, []])
  })

  it('a session that the worker itself still answers for is not forgotten', async () => {
    const answers = [7, 7, 8, 8]
    const { recovery, left } = setUp({ left: ['s1'], open: async () => answers.shift() ?? 8 })
    const recovering = recovery.recover(7)
    await until(() => answers.length < 3, { what: 'a second try' })
    expect(left()).to.deep.equal(['s1'])
    await recovering
    expect([left(), answers.length]).to.deep.equal([[], 1])
  })

  it('D32.7a: a run of a dead worker is found where it went on, and waited for meanwhile', async () => {
    const opening = Promise.withResolvers<number>()
    const { recovery, moved } = setUp({ left: ['s1'], open: () => opening.promise })
    const finding = recovery.find(TENANT, RUN, 7)
    moved.set(RUN, 8)
    expect(await finding).to.equal(8)
    opening.resolve(8)
    await recovery.recover(7)
  })

  it('D32.7a: a run is found as soon as its new worker says that it goes on there, before all sessions are open', async () => {
    const opening = Promise.withResolvers<number>()
    const looked: string[] = []
    const find = async (_tenant: string, runId: string) => void looked.push(runId)
    const { recovery } = setUp({ left: ['s1'], open: () => opening.promise, movedRuns: { find } })
    const finding = recovery.find(TENANT, RUN, 7)
    await until(() => looked.length > 0, { what: 'the first look' })
    recovery.onMoved(['run_other', RUN], 8)
    expect([await finding, looked]).to.deep.equal([8, [RUN]])
    opening.resolve(8)
    await recovery.recover(7)
  })

  it('D32.7a: a run that went on at a worker which died, too, is found where it is in the end', async () => {
    const dead = new Set([7, 8])
    const { recovery, moved } = setUp({ isMember: async (epoch) => !dead.has(epoch) })
    moved.set(RUN, 8)
    const finding = recovery.find(TENANT, RUN, 7)
    await recovery.recover(8)
    moved.set(RUN, 9)
    expect(await finding).to.equal(9)
  })

  it('D32.4: a run that nobody goes on with is nowhere, nor is one that its living worker does not know', async () => {
    const { recovery } = setUp({ left: ['s1'], open: async () => 8 })
    expect(await recovery.find(TENANT, RUN, 7)).to.equal(undefined)
    const alive = setUp({ isMember: async () => true })
    expect([await alive.recovery.find(TENANT, RUN, 7), alive.opened]).to.deep.equal([undefined, []])
  })

  it('D32.7a: a run whose session could not be opened in time is not lost: whoever looks for it is told to come back', async () => {
    const open = async () => {
      throw new AppError('unavailable', 'full')
    }
    const { recovery, left } = setUp({ left: ['s1'], open, patienceMs: 0 })
    expect(await statusOf(recovery.find(TENANT, RUN, 7, 600))).to.equal(503)
    expect([await recovery.recover(7), left()]).to.deep.equal([false, ['s1']])
  })

  it('D32.7a: while Redis has lost its keys a run that is not found is not lost', async () => {
    const rebuilt = [false, false, true]
    const { recovery, moved } = setUp({
      left: [],
      async isRebuilt() {
        const isRebuilt = rebuilt.shift() ?? true
        if (isRebuilt) moved.set(RUN, 8)
        return isRebuilt
      },
    })
    expect(await recovery.find(TENANT, RUN, 7)).to.equal(8)
  })

  it('D32.7a: a run whose second worker died too is found at the third', async () => {
    const { recovery, moved } = setUp({ isMember: async (epoch) => epoch === 9, left: [] })
    moved.set(RUN, 8)
    const finding = recovery.find(TENANT, RUN, 8)
    moved.set(RUN, 9)
    expect(await finding).to.equal(9)
  })

  it('D32.8: at its start a gateway looks for the sessions of workers that nobody saw die', async () => {
    const { recovery, left } = setUp()
    recovery.start()
    await until(() => left().length === 0, { what: 'the sessions to be opened' })
    recovery.stop()
  })
})
