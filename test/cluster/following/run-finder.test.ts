import { expect } from 'chai'
import type { RunProcesses, SourceState } from '../../../shared/cluster/following/port.ts'
import { type QueuedRunSource, QueuePlaces } from '../../../shared/cluster/following/queue-places.ts'
import { RunFinder } from '../../../shared/cluster/following/run-finder.ts'
import type { FrameStream } from '../../../shared/cluster/journal/frame-stream.ts'
import { failureFrame, type ReaderFailure } from '../../../shared/cluster/journal/frames.ts'
import { AppError, notFound } from '../../../shared/kernel/errors.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { textOf } from '../../support/broker-answers.ts'
import { failureOf } from '../../support/failure-of.ts'

const TENANT = DEFAULT_TENANT
const QUEUED: SourceState = { state: 'waiting', started_at: '2026-01-01T00:00:00.000Z' }
const RUNNING: SourceState = { state: 'at', epoch: 5 }
/** Its executor is dead, and another one begins it anew. */
const MOVING: SourceState = { state: 'at', epoch: 6, mayMove: { started_at: QUEUED.started_at } }
const ENDED: SourceState = { state: 'ended', epoch: 5 }

type Setup = {
  /** The state at each look-up; the last one stays. */
  states?: (SourceState | undefined)[]
  isTaken?: boolean
  /** How often the executor does not know the run yet. */
  misses?: number
  failure?: AppError
  /** With what the stream of the executor ends. */
  failed?: ReaderFailure
  isAlive?: (epoch: number) => Promise<boolean>
  movesWithinMs?: number
}

/** Queued runs in front of a fake store and a fake executor of epoch 5. */
function setUp({ states = [QUEUED], isTaken = false, misses = 0, failure, ...more }: Setup = {}) {
  const left = [...states]
  const calls: string[] = []
  const atExecutor = async <T>(name: string, value: T): Promise<T> => {
    calls.push(name)
    if (failure) throw failure
    if (calls.length <= misses) throw notFound('not yet')
    return value
  }
  async function* frames(): FrameStream {
    yield { text: 'begun', lastSeq: 1 }
    if (more.failed) yield failureFrame(1, more.failed)
  }
  const source: QueuedRunSource = {
    find: async () => (left.length > 1 ? left.shift() : left[0]),
    async cancelWaiting(_tenant, _runId, lost) {
      calls.push(`cancel waiting ${lost ?? 'in the queue'}`)
      return isTaken
    },
  }
  const processes: RunProcesses = {
    isAlive: more.isAlive ?? (async (epoch) => epoch === 5),
    getRun: () => atExecutor('get', { run_id: 'r', status: 'running', started_at: '', ended_at: null, event_count: 1 }),
    followRun: (_place, after) => atExecutor(`follow after ${after}`, frames()),
    cancelRun: () => atExecutor('cancel', undefined),
  }
  const { movesWithinMs } = more
  const places = new QueuePlaces([source], processes, movesWithinMs === undefined ? {} : { movesWithinMs })
  const runs = new RunFinder({ places, processes })
  return { runs, calls }
}

describe('a run that was queued for an executor', () => {
  it('is shown as waiting while it is queued, and by its executor from then on', async () => {
    const { runs, calls } = setUp({ states: [QUEUED, RUNNING] })
    expect(await runs.getRun(TENANT, 'r')).to.include({ run_id: 'r', status: 'waiting', started_at: QUEUED.started_at })
    expect(await runs.getRun(TENANT, 'r')).to.include({ status: 'running' })
    expect(calls).to.deep.equal(['get'])
  })

  it('is followed from its first event on while it is queued, and at its executor from the given one on', async () => {
    const { runs, calls } = setUp({ states: [QUEUED, RUNNING] })
    const waiting = await runs.followRun(TENANT, 'r', 0)
    expect([runs.waiting.count, calls]).to.deep.equal([1, []])
    expect(await textOf(await runs.followRun(TENANT, 'r', 3))).to.equal('begun')
    expect(calls).to.deep.equal(['follow after 3'])
    runs.waiting.fail('worker_draining')
    expect(await textOf(waiting)).to.include('worker_draining')
  })

  it('is cancelled in the queue, which ends its streams, and else at its executor', async () => {
    const { runs, calls } = setUp({ states: [QUEUED], isTaken: true })
    const waiting = await runs.followRun(TENANT, 'r', 0)
    await runs.cancelRun(TENANT, 'r')
    expect(await textOf(waiting)).to.include('cancelled')
    expect(calls).to.deep.equal(['cancel waiting in the queue'])
    const begun = setUp({ states: [QUEUED, RUNNING] })
    await begun.runs.cancelRun(TENANT, 'r')
    expect(begun.calls).to.deep.equal(['cancel waiting in the queue', 'cancel'])
  })

  it('D34.2: that is to begin anew is shown as running, and cancelled in the store, or at the executor that was faster', async () => {
    const { runs, calls } = setUp({ states: [MOVING], isTaken: true })
    expect(await runs.getRun(TENANT, 'r')).to.deep.include({ status: 'running', started_at: QUEUED.started_at })
    await runs.cancelRun(TENANT, 'r')
    expect(calls).to.deep.equal(['cancel waiting 6'])
    const begun = setUp({ states: [MOVING, RUNNING] })
    await begun.runs.cancelRun(TENANT, 'r')
    expect(begun.calls).to.deep.equal(['cancel waiting 6', 'cancel'])
  })

  it('D34.2: is looked up again when its executor died while it was asked', async () => {
    const isAlive = [true, false]
    const { runs, calls } = setUp({ states: [MOVING], isTaken: true, isAlive: async () => isAlive.shift() ?? false })
    await runs.cancelRun(TENANT, 'r')
    expect(calls).to.deep.equal(['cancel waiting 6'])
  })

  it('D34.2: that is to begin anew is followed where it does, and its reader comes back when that takes too long', async () => {
    const { runs, calls } = setUp({ states: [MOVING, MOVING, RUNNING] })
    expect(await textOf(await runs.followRun(TENANT, 'r', 3))).to.equal('begun')
    expect(calls).to.deep.equal(['follow after 3'])
    const waiting = setUp({ states: [MOVING], movesWithinMs: 1 })
    const text = await textOf(await waiting.runs.followRun(TENANT, 'r', 3))
    expect(text).to.match(/id: 3\n[^]*"code":"relay_unavailable"/)
  })

  it('D34.2: whose executor has lost it, and is a member again, ends its streams with that', async () => {
    const isAlive = [true, true, true, true]
    const { runs } = setUp({ states: [RUNNING], failed: 'worker_lost', isAlive: async () => isAlive.pop() ?? false })
    expect(await textOf(await runs.followRun(TENANT, 'r', 0))).to.match(/^begun[^]*"code":"worker_lost"/)
    expect(isAlive).to.have.length(1)
  })

  it('D34.2: that was cancelled before it began anew ends its streams with that', async () => {
    const states: SourceState[] = [
      { ...MOVING, epoch: 5 },
      { state: 'ended', epoch: 5, code: 'cancelled' },
    ]
    const { runs } = setUp({ states, failed: 'worker_lost' })
    expect(await textOf(await runs.followRun(TENANT, 'r', 0))).to.match(/id: 1\n[^]*"code":"cancelled"/)
  })

  it('that cannot be taken out of the queue and has not begun is a conflict', async () => {
    expect(await failureOf(setUp().runs.cancelRun(TENANT, 'r'))).to.include({ kind: 'conflict' })
  })

  it('is asked for again while its executor, which the store names first, does not know it yet', async () => {
    const { runs, calls } = setUp({ states: [RUNNING], misses: 1 })
    await runs.cancelRun(TENANT, 'r')
    expect(calls).to.deep.equal(['cancel', 'cancel'])
    const ended = setUp({ states: [ENDED], misses: 1 })
    expect(await failureOf(ended.runs.getRun(TENANT, 'r'))).to.include({ kind: 'not_found' })
    const away = setUp({ states: [RUNNING], failure: new AppError('unavailable', 'away') })
    expect(await failureOf(away.runs.getRun(TENANT, 'r'))).to.include({ kind: 'unavailable' })
    expect([ended.calls.length, away.calls.length]).to.deep.equal([1, 1])
  })

  it('is unknown when the store does not have it, when it never began, and when its executor is gone', async () => {
    const gone: (SourceState | undefined)[] = [undefined, { state: 'ended', epoch: null }, { state: 'at', epoch: 6 }]
    for (const state of gone) {
      const { runs, calls } = setUp({ states: [state] })
      expect(await failureOf(runs.getRun(TENANT, 'r'))).to.include({ kind: 'not_found' })
      expect(calls).to.deep.equal([])
    }
  })

  it('is unknown to a server that has no queue', async () => {
    const processes = { isAlive: async () => true } as unknown as RunProcesses
    const runs = new RunFinder({ places: new QueuePlaces([], processes), processes })
    for (const call of [runs.getRun(TENANT, 'r'), runs.followRun(TENANT, 'r', 0), runs.cancelRun(TENANT, 'r')])
      expect(await failureOf(call)).to.include({ kind: 'not_found' })
  })
})
