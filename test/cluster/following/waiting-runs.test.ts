import { expect } from 'chai'
import { type RunState, UNKNOWN } from '../../../shared/cluster/following/port.ts'
import { WaitingRuns } from '../../../shared/cluster/following/waiting-runs.ts'
import type { FrameStream } from '../../../shared/cluster/journal/frame-stream.ts'
import { failureFrame } from '../../../shared/cluster/journal/frames.ts'
import { AppError, notFound } from '../../../shared/kernel/errors.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { textOf } from '../../support/broker-answers.ts'
import { tenantId } from '../../support/tenant.ts'
import { until } from '../../support/until.ts'

const TENANT = DEFAULT_TENANT
const RUNNING: RunState = { state: 'at', epoch: 5 }
const QUEUED: RunState = { state: 'waiting', started_at: '2026-01-01T00:00:00.000Z' }
const away = () => new AppError('unavailable', 'away')

async function* streamOf(text: string): FrameStream {
  yield { text, lastSeq: 1 }
}

/** A stream that nobody reads, and says when it is left. */
const leftStream = (onLeft: () => void): FrameStream => ({
  [Symbol.asyncIterator]: () => ({
    next: async () => expect.fail('nobody reads it'),
    async return() {
      onLeft()
      return { done: true, value: undefined }
    },
  }),
})

type Setup = {
  find?: (runId: string) => RunState
  follow?: (count: number) => FrameStream
  lookEveryMs?: number
}

/** Waiting runs in front of a fake store and a fake executor of epoch 5. */
function setUp({ find = () => QUEUED, follow = () => streamOf('begun'), lookEveryMs = 2 }: Setup = {}) {
  const looked: string[] = []
  const followed: string[] = []
  const waiting = new WaitingRuns({
    places: {
      async find({ runId }) {
        looked.push(runId)
        return find(runId)
      },
    },
    processes: {
      async followRun({ runId, epoch }, after) {
        followed.push(`${runId} at ${epoch} after ${after}`)
        return follow(followed.length)
      },
    },
    lookEveryMs,
  })
  return { waiting, looked, followed }
}

/** The stream of a waiting run that is nowhere else. */
const wait = (waiting: WaitingRuns, runId: string) =>
  waiting.wait(
    { tenant: TENANT, runId },
    { mayGoOn: () => false, followElsewhere: async () => expect.fail('it does not move') },
  )

const lost = String(failureFrame(0, 'worker_lost').text)

describe('streams of runs that wait in the queue', () => {
  it('the start notice opens every stream of the run at its executor, and no other', async () => {
    const { waiting, followed } = setUp({ lookEveryMs: 60_000 })
    const readings = [wait(waiting, 'a'), wait(waiting, 'a')].map(textOf)
    const other = wait(waiting, 'b')[Symbol.asyncIterator]()
    expect(waiting.count).to.equal(3)
    waiting.onStarted('a', 5)
    waiting.onStarted('a', 5)
    expect(await Promise.all(readings)).to.deep.equal(['begun', 'begun'])
    expect(followed).to.deep.equal(['a at 5 after 0', 'a at 5 after 0'])
    expect(waiting.count).to.equal(1)
    await other.return?.()
  })

  it('a run that is expected begins with the frames that its executor sends, which also is a start notice to the other readers', async () => {
    const { waiting, looked, followed } = setUp({ lookEveryMs: 60_000 })
    const begin = waiting.expect({ tenant: TENANT, runId: 'a' })
    expect(waiting.isExpected({ tenant: TENANT, runId: 'a' })).to.equal(true)
    expect(waiting.isExpected({ tenant: tenantId('other'), runId: 'a' })).to.equal(false)
    const readings = [wait(waiting, 'a'), wait(waiting, 'a')].map(textOf)
    expect(waiting.isExpected({ tenant: TENANT, runId: 'a' })).to.equal(false)
    begin(5, () => streamOf('sent'))
    expect(await Promise.all(readings)).to.deep.equal(['sent', 'begun'])
    expect([looked, followed, waiting.count]).to.deep.equal([[], ['a at 5 after 0'], 0])
  })

  it('frames that come after their reader has left are left at once, and those before one follows are a start notice', async () => {
    const { waiting, followed } = setUp({ lookEveryMs: 60_000 })
    let isLeft = false
    const begin = waiting.expect({ tenant: TENANT, runId: 'a' })
    await wait(waiting, 'a')[Symbol.asyncIterator]().return?.()
    begin(5, () => leftStream(() => void (isLeft = true)))
    expect(isLeft).to.equal(true)
    waiting.expect({ tenant: TENANT, runId: 'b' })(5, () => expect.fail('nobody reads it'))
    expect(await textOf(wait(waiting, 'b'))).to.equal('begun')
    expect(followed).to.deep.equal(['b at 5 after 0'])
  })

  it('the latest thousand bells are remembered for a reader that comes just after its own', async () => {
    const { waiting } = setUp({ lookEveryMs: 60_000 })
    for (let i = 0; i <= 1_000; i++) waiting.onStarted(`run ${i}`, 5)
    expect(await textOf(wait(waiting, 'run 1'))).to.equal('begun')
    const forgotten = wait(waiting, 'run 0')
    expect(waiting.count).to.equal(1)
    waiting.fail('worker_draining')
    expect(await textOf(forgotten)).to.include('worker_draining')
  })

  it('runs are looked up again and again while somebody waits, also when the store is away for a time', async () => {
    let isAway = true
    const { waiting, looked } = setUp({
      find() {
        if (isAway) throw away()
        return RUNNING
      },
    })
    const reading = textOf(wait(waiting, 'a'))
    await until(() => looked.length > 3, { what: 'some look-ups' })
    isAway = false
    expect(await reading).to.equal('begun')
  })

  it('a run that begins while the store is asked for another is looked up in the same round', async () => {
    const states: Record<string, RunState> = { a: QUEUED, b: RUNNING }
    const { waiting, looked } = setUp({ find: (runId) => states[runId] ?? UNKNOWN })
    const first = wait(waiting, 'a')[Symbol.asyncIterator]()
    expect(await textOf(wait(waiting, 'b'))).to.equal('begun')
    expect(looked.slice(0, 2)).to.deep.equal(['a', 'b'])
    await first.return?.()
  })

  it('a run that comes while another one is looked up is looked up after its own time, not with that one', async () => {
    const times = new Map<string, number>()
    const young = { cameAt: 0, ends: [] as Promise<string>[] }
    const { waiting } = setUp({
      lookEveryMs: 100,
      find(runId) {
        if (times.size === 0) {
          young.cameAt = performance.now()
          young.ends.push(textOf(wait(waiting, 'young')))
        }
        times.set(runId, times.get(runId) ?? performance.now())
        return QUEUED
      },
    })
    const old = textOf(wait(waiting, 'old'))
    const lookedAt = await until(() => times.get('young'), { what: 'a look-up of the one that came' })
    expect(lookedAt - young.cameAt).to.be.at.least(99)
    waiting.fail('cancelled')
    await Promise.all([old, ...young.ends])
  })

  it('the store is asked for one run at a time, also for those that come while it is asked', async () => {
    let [asked, most, rounds] = [0, 0, 0]
    const waiting = new WaitingRuns({
      places: {
        async find() {
          most = Math.max(most, ++asked)
          await new Promise(setImmediate)
          asked--
          rounds++
          return QUEUED
        },
      },
      processes: { followRun: async () => streamOf('begun') },
      lookEveryMs: 1,
    })
    const streams = [wait(waiting, 'a')]
    await until(() => rounds > 0, { what: 'the first look-up', everyMs: 1 })
    streams.push(wait(waiting, 'b'), wait(waiting, 'c'))
    await until(() => rounds > 12, { what: 'several look-ups of each run', everyMs: 1 })
    expect(most).to.equal(1)
    waiting.fail('cancelled')
    await Promise.all(streams.map(textOf))
  })

  it('an executor that does not answer is called again; one that does not know its run four times has lost it', async () => {
    const refusals = [away(), away(), away(), away(), away()]
    const patient = setUp({
      find: () => RUNNING,
      follow(count) {
        const refusal = refusals[count - 1]
        if (refusal) throw refusal
        return streamOf('begun')
      },
    })
    expect(await textOf(wait(patient.waiting, 'a'))).to.equal('begun')
    const forgetful = setUp({
      find: () => RUNNING,
      follow() {
        throw notFound('no run')
      },
    })
    expect(await textOf(wait(forgetful.waiting, 'a'))).to.equal(lost)
    expect(forgetful.followed).to.have.length(4)
  })

  it('a run that is unknown, or that nobody has begun or goes on with, ends its streams with worker_lost', async () => {
    const moving = { state: 'moving', epoch: 6, started_at: '' } as const
    for (const found of [UNKNOWN, moving, { state: 'ended', epoch: null } as const]) {
      const { waiting, followed } = setUp({ find: () => found })
      expect(await textOf(wait(waiting, 'a'))).to.equal(lost)
      expect([followed, waiting.count]).to.deep.equal([[], 0])
    }
  })

  it('frames that come after the reader has left, or after a failure, are returned', async () => {
    for (const leave of [
      (frames: AsyncIterator<unknown>) => void frames.return?.(),
      (_frames: AsyncIterator<unknown>, waiting: WaitingRuns) => waiting.fail('relay_unavailable'),
    ]) {
      const returned = Promise.withResolvers<void>()
      async function* frames(): FrameStream {
        yield { text: 'x', lastSeq: 1 }
      }
      const source = frames()
      const opening = Promise.withResolvers<void>()
      const waiting = new WaitingRuns({
        places: { find: async () => QUEUED },
        processes: {
          async followRun() {
            await opening.promise
            return {
              [Symbol.asyncIterator]: () => ({
                next: () => source[Symbol.asyncIterator]().next(),
                async return() {
                  returned.resolve()
                  return { done: true, value: undefined }
                },
              }),
            }
          },
        },
        lookEveryMs: 60_000,
      })
      const stream = wait(waiting, 'a')[Symbol.asyncIterator]()
      waiting.onStarted('a', 5)
      leave(stream, waiting)
      opening.resolve()
      await returned.promise
      expect(waiting.count).to.equal(0)
    }
  })

  it('the end of the waits is reported at once, or after a time', async () => {
    const { waiting } = setUp({ lookEveryMs: 60_000 })
    await waiting.ended(60_000)
    const reading = textOf(wait(waiting, 'a'))
    await waiting.ended(1)
    expect(waiting.count).to.equal(1)
    const ended = waiting.ended(60_000)
    waiting.fail('cancelled', 'b')
    expect(waiting.count).to.equal(1)
    waiting.fail('cancelled', 'a')
    await ended
    expect(await reading).to.include('"code":"cancelled"')
  })
})
