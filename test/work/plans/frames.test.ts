import { expect } from 'chai'
import type { Frames } from '../../../shared/cluster/journal/frame-stream.ts'
import { failureFrame, renderFrame } from '../../../shared/cluster/journal/frames.ts'
import { AppError, notFound } from '../../../shared/kernel/errors.ts'
import { errorEvent, type RunEvent } from '../../../shared/kernel/events.ts'
import { newPlanId } from '../../../shared/kernel/ids.ts'
import { eventsOf } from '../../../shared/work/plans/events-of.ts'
import { type WatchedPlan, watchPlan } from '../../../shared/work/plans/frames.ts'
import type { PlanRecord } from '../../../shared/work/plans/port.ts'
import { beginStep, endStep, finish, newPlan } from '../../../shared/work/plans/transitions.ts'
import { FedStream } from '../flows/calls/fed-stream.ts'
import { AT, EXECUTOR, headsOf, readAll, stepOf } from './calls-setup.ts'
import { begin } from './plan-setup.ts'

const BY = { executor: EXECUTOR, at: AT }
const QUEUED = newPlan({ id: newPlanId(), subject: 'ada', steps: [stepOf('a')], at: AT })
const RUNNING = apply(apply(QUEUED, begin(BY)), beginStep('a', BY))
const DONE = apply(apply(RUNNING, endStep('a', BY)), finish(BY))
const EVENTS = eventsOf(DONE)
const HEADS = ['1 plan_started', '2 step_started', '3 step_ended', '4 plan_ended']

function apply(plan: PlanRecord, transition: (plan: PlanRecord) => PlanRecord | undefined): PlanRecord {
  const next = transition(plan)
  if (!next) throw new Error('the transition does not apply')
  return next
}

/** The frames of events, of which the first has number `from`. */
const framesFrom = (from: number, events: readonly RunEvent[]): Frames => ({
  text: events.map((event, i) => renderFrame(from + i, event)).join(''),
  lastSeq: from + events.length - 1,
})

const framesTo = (from: number, to: number): Frames => framesFrom(from, EVENTS.slice(from - 1, to))

/** `sources` are followed in turn: an error is thrown, and when there are no more the run is unknown. */
function watch(sources: (FedStream | Error)[], deps: Partial<WatchedPlan> = {}) {
  const followed: number[] = []
  const plan = watchPlan({
    after: 0,
    read: async () => RUNNING,
    silentMs: 5,
    retryMs: 1,
    async follow(after) {
      followed.push(after)
      const source = sources.shift() ?? notFound('no such run')
      if (source instanceof Error) throw source
      return source
    },
    ...deps,
  })
  return { plan, followed }
}

function streamOf(...frames: Frames[]): FedStream {
  const stream = new FedStream()
  for (const each of frames) stream.push(each)
  return stream
}

describe('the watched frames of a plan', () => {
  it('are those of its executor, and end with plan_ended, whatever follows', async () => {
    const stream = streamOf(framesTo(1, 2), framesTo(3, 4))
    const { plan, followed } = watch([stream])
    expect(headsOf(await readAll(plan))).to.deep.equal(HEADS)
    expect(followed).to.deep.equal([0])
    expect(stream.returns).to.equal(1)
  })

  it('go on from the number that the reader has', async () => {
    const { plan, followed } = watch([streamOf(framesTo(3, 4))], { after: 2 })
    expect(headsOf(await readAll(plan))).to.deep.equal(HEADS.slice(2))
    expect(followed).to.deep.equal([2])
  })

  it('leave out what the reader has when a queued plan is read from its start', async () => {
    const inBytes = framesTo(1, 4)
    const bytes = { ...inBytes, text: Buffer.from(inBytes.text) }
    const { plan } = watch([streamOf(framesTo(1, 1), bytes)], { after: 2 })
    expect(headsOf(await readAll(plan))).to.deep.equal(HEADS.slice(2))
  })

  it('go on at the next executor when one was lost, stopped or is silent at first', async () => {
    const draining = errorEvent('worker_draining', 'this executor shuts down')
    const stopped = framesFrom(2, [EVENTS[1] as RunEvent, draining])
    const sources = [
      streamOf(framesTo(1, 1), failureFrame(1, 'worker_lost')),
      notFound('the executor is dead'),
      new AppError('unavailable', 'the relay does not answer'),
      streamOf(stopped),
      streamOf(framesFrom(3, [draining])),
      streamOf(framesTo(3, 4)),
    ]
    const { plan, followed } = watch(sources)
    expect(headsOf(await readAll(plan))).to.deep.equal(HEADS)
    expect(followed).to.deep.equal([0, 1, 1, 1, 2, 2])
  })

  it('look into the record, and wait, before they follow an executor again that has sent nothing', async () => {
    const looked = Promise.withResolvers<void>()
    const read = async () => {
      looked.resolve()
      return RUNNING
    }
    const stopped = streamOf(framesFrom(1, [errorEvent('worker_draining', 'this executor shuts down')]))
    const { plan, followed } = watch([stopped, streamOf(framesTo(1, 4))], { retryMs: 60_000, read })
    const reading = plan.next()
    await Promise.race([looked.promise, reading])
    expect(followed).to.deep.equal([0])
    await plan.return()
    expect((await reading).done).to.equal(true)
  })

  it('end with the events of the record when no executor sends them', async () => {
    const ends: (FedStream | Error)[][] = [
      [notFound('its run is forgotten')],
      [streamOf(framesTo(1, 2))], // Silent from then on.
      [streamOf(framesTo(1, 2), failureFrame(2, 'cancelled'))],
    ]
    for (const sources of ends) {
      const { plan } = watch(sources, { read: async () => DONE })
      expect(headsOf(await readAll(plan))).to.deep.equal(HEADS)
    }
  })

  it('end at once, without a frame, for a reader who has the last one', async () => {
    const { plan } = watch([], { after: 4, read: async () => DONE })
    expect(await readAll(plan)).to.equal('')
  })

  it('end with plan_ended under the last number when the lost executor had sent more than the record tells of', async () => {
    const repeated = framesFrom(1, [...EVENTS.slice(0, 2), ...EVENTS.slice(1, 2), ...EVENTS.slice(1, 2)])
    const { plan } = watch([streamOf(repeated, failureFrame(4, 'worker_lost'))], { read: async () => DONE })
    expect(headsOf(await readAll(plan)).slice(-2)).to.deep.equal(['4 step_started', '4 plan_ended'])
  })

  it('wait while the store and the executors are away', async () => {
    let reads = 0
    const read = async () => {
      if (++reads < 3) throw new AppError('unavailable', 'the store does not answer')
      return DONE
    }
    const { plan } = watch([], { read })
    expect(headsOf(await readAll(plan))).to.deep.equal(HEADS)
    expect(reads).to.equal(3)
  })

  it('D4.2: end with the failure of this reader under the number of the last frame', async () => {
    for (const failure of ['worker_draining', 'slow_consumer', 'stream_gap'] as const) {
      const { plan } = watch([streamOf(framesTo(1, 2), failureFrame(0, failure))])
      const text = await readAll(plan)
      expect(headsOf(text)).to.deep.equal([...HEADS.slice(0, 2), '2 error'])
      expect(text).to.include(failure)
    }
  })

  it('a reader who leaves ends every wait: for frames, for another look, and for the executor', async () => {
    const silent = new FedStream()
    const waiting = watch([silent], { silentMs: 60_000 })
    const reading = waiting.plan.next()
    await waiting.plan.return?.()
    expect((await reading).done).to.equal(true)
    expect(silent.returns).to.equal(1)

    const looked = Promise.withResolvers<void>()
    const read = async () => {
      looked.resolve()
      return RUNNING
    }
    const searching = watch([], { retryMs: 60_000, read })
    const searched = searching.plan.next()
    await looked.promise
    await searching.plan.return?.()
    expect((await searched).done).to.equal(true)

    const late = new FedStream()
    const found = Promise.withResolvers<FedStream>()
    const opening = watch([], { follow: () => found.promise })
    const opened = opening.plan.next()
    await opening.plan.return?.()
    found.resolve(late)
    expect((await opened).done).to.equal(true)
    expect(late.returns).to.equal(1)
  })

  it('a fault while the plan is followed is thrown', async () => {
    const { plan } = watch([new Error('a bug')])
    const cause = await plan.next().catch(({ message }: Error) => message)
    expect(cause).to.equal('a bug')
  })
})
