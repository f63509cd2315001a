import { expect } from 'chai'
import { RunFinder } from '../../../../shared/cluster/following/run-finder.ts'
import type { FrameStream } from '../../../../shared/cluster/journal/frame-stream.ts'
import { failureFrame } from '../../../../shared/cluster/journal/frames.ts'
import { createRunId, RunCalls, type RunCallsDeps } from '../../../../shared/cluster/relay/gateway/worker-calls.ts'
import { WorkerPlaces, type WorkerPlacesDeps } from '../../../../shared/cluster/relay/gateway/worker-places.ts'
import { AppError, notFound } from '../../../../shared/kernel/errors.ts'
import { epochOfRun } from '../../../../shared/kernel/ids.ts'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'
import { textOf } from '../../../support/broker-answers.ts'
import { failureOf } from '../../../support/failure-of.ts'

const TENANT = DEFAULT_TENANT
const RUN = createRunId(1)

type Setup = {
  /** The workers that are known, and those that a new list finds. */
  known?: number[]
  found?: number[]
  moved?: number
  isKept?: boolean
  recovery?: WorkerPlacesDeps['recovery']
  answer?: (epoch: number, method: string) => unknown
}

/** The calls of a gateway; worker 1 has the run, unless `answer` says otherwise. */
function setUp({
  known = [1, 2],
  found = [],
  moved,
  isKept = false,
  recovery,
  answer = () => ({ session_id: 's1' }),
}: Setup = {}) {
  const made: string[] = []
  const opened: string[] = []
  const alive = [...known]
  const stream = (epoch: number, after: number) => {
    const events: string[] = []
    opened.push(`${epoch} after ${after}`)
    async function* frames(): FrameStream {
      yield { text: `of ${epoch}`, lastSeq: 1 }
    }
    return Object.assign(frames(), {
      startAfter: (seq: number) => events.push(`starts after ${seq}`),
      keepSession: () => events.push('session is kept'),
      events,
    })
  }
  let newest: ReturnType<typeof stream> | undefined
  const isKnown = (epoch: number) => alive.includes(epoch)
  const deps = {
    isKnown,
    discover: async () => void alive.push(...found),
    calls: {
      call: async ({ epoch }: { epoch: number }, method: string) => {
        made.push(`${epoch} ${method}`)
        return answer(epoch, method)
      },
      isWorkerLost: (_epoch: number, cause: unknown) => cause instanceof AppError && cause.code === 'worker_silent',
    },
    streams: {
      open: (epoch: number, after: number) => {
        newest = stream(epoch, after)
        return { number: 1, stream: newest }
      },
    },
    areSessionsKept: isKept,
  }
  const processes = new RunCalls(deps as unknown as RunCallsDeps)
  const places = new WorkerPlaces({
    workers: { isAlive: isKnown },
    movedRuns: { find: async () => moved },
    recovery,
  })
  const runs = new RunFinder({ places, processes })
  return { runs, places, made, opened, events: () => newest?.events }
}

describe('the calls of a gateway for a run', () => {
  it('go to the worker that the run’s id names', async () => {
    expect([epochOfRun(RUN), RUN]).to.satisfy(
      ([epoch, id]: [number, string]) => epoch === 1 && /^run_[0-9a-f]{32}$/.test(id),
    )
    const { runs, made } = setUp()
    await runs.getRun(TENANT, RUN)
    await runs.cancelRun(TENANT, RUN)
    expect(made).to.deep.equal(['1 getRun', '1 cancelRun'])
  })

  it('go to a worker that has just joined after the members were listed again, and are 404 without one', async () => {
    const joined = setUp({ known: [], found: [1] })
    await joined.runs.getRun(TENANT, RUN)
    expect(joined.made).to.deep.equal(['1 getRun'])
    const gone = setUp({ known: [] })
    expect(await failureOf(gone.runs.getRun(TENANT, RUN))).to.include({ kind: 'not_found' })
    expect(gone.made).to.deep.equal([])
  })

  it('are 404 when the worker is lost meanwhile, and else throw its refusal', async () => {
    const cases = [
      ['worker_silent', 'not_found'],
      ['worker_draining', 'unavailable'],
    ] as const
    for (const [code, kind] of cases) {
      const { runs } = setUp({
        answer: () => {
          throw new AppError('unavailable', 'x', { code })
        },
      })
      expect(await failureOf(runs.getRun(TENANT, RUN)), code).to.include({ kind })
    }
  })

  it('go to where the run has moved when its first worker does not know it', async () => {
    const answer = (epoch: number) => {
      if (epoch === 1) throw notFound('no run')
    }
    const { runs, made } = setUp({ moved: 2, answer })
    await runs.cancelRun(TENANT, RUN)
    expect(made).to.deep.equal(['1 cancelRun', '2 cancelRun'])
    for (const moved of [undefined, 1]) {
      const unmoved = setUp({ ...(moved && { moved }), answer })
      expect(await failureOf(unmoved.runs.cancelRun(TENANT, RUN))).to.include({ kind: 'not_found' })
      expect(unmoved.made).to.have.length(1)
    }
  })

  it('go on to the next worker when the one that the run has moved to is lost meanwhile', async () => {
    const places = new Map([
      [1, 2],
      [2, 3],
    ])
    const stopped = new AbortController().signal
    const answer = (epoch: number) => {
      if (epoch === 1) throw notFound('no run')
      if (epoch === 2) throw new AppError('unavailable', 'x', { code: 'worker_silent' })
      return { session_id: 's1' }
    }
    const setup = { known: [1, 2, 3], answer }
    const { runs, made } = setUp({ ...setup, recovery: { stopped, find: async (_t, _r, from) => places.get(from) } })
    await runs.getRun(TENANT, RUN)
    expect(made).to.deep.equal(['1 getRun', '2 getRun', '3 getRun'])
    const lost = setUp({ ...setup, moved: 2 })
    expect(await failureOf(lost.runs.getRun(TENANT, RUN))).to.include({ kind: 'not_found' })
  })

  it('D37.3: wait for a run that is to be cancelled for 10 s in all, and for another as long as it takes to be found', async () => {
    const given: (number | undefined)[] = []
    const answer = (epoch: number) => {
      if (epoch < 3) throw notFound('no run')
      return { session_id: 's1' }
    }
    const find = async (_tenant: unknown, _runId: string, from: number, withinMs?: number) => {
      given.push(withinMs)
      return from + 1
    }
    const recovery = { stopped: new AbortController().signal, find }
    const { runs } = setUp({ known: [1, 2, 3], answer, recovery })
    await runs.cancelRun(TENANT, RUN)
    const [first = NaN, second = NaN] = given
    expect([first < 10_000, second < first, second > 500]).to.deep.equal([true, true, true])
    await runs.getRun(TENANT, RUN)
    expect(given.slice(2)).to.deep.equal([undefined, undefined])
  })

  it('know a run’s worker by the id or by where it has moved', async () => {
    const isAlive = (setup: Setup) => setUp(setup).places.isWorkerAlive(TENANT, RUN)
    expect(await isAlive({ known: [1] })).to.equal(true)
    expect(await isAlive({ known: [2], moved: 2 })).to.equal(true)
    expect(await isAlive({ known: [2] })).to.equal(false)
  })

  it('follow a run from where the worker begins, or from where they were asked to when it does not say', async () => {
    for (const [answered, startsAfter] of [
      [3, 3],
      [null, 5],
    ] as const) {
      const { runs, opened, events } = setUp({ answer: () => answered })
      expect(await textOf(await runs.followRun(TENANT, RUN, 5))).to.equal('of 1')
      expect([opened, events()]).to.deep.equal([['1 after 5'], [`starts after ${startsAfter}`]])
    }
  })

  it('note that the session outlives its worker, where sessions are stored', async () => {
    const { runs, events } = setUp({
      isKept: true,
      answer: (_epoch, method) => (method === 'getRun' ? { session_id: 's1' } : 0),
    })
    await textOf(await runs.followRun(TENANT, RUN, 0))
    expect(events()).to.deep.equal(['starts after 0', 'session is kept'])
  })

  describe('for a stream that broke off', () => {
    /** A run of dead worker 1, which is found at these workers one after the other. */
    function broken(places: (number | undefined)[], answer: (epoch: number) => unknown) {
      const asked: number[] = []
      const find = async (_tenant: unknown, _runId: string, from: number) => {
        asked.push(from)
        return places.length > 1 ? places.shift() : places[0]
      }
      const known = setUp({ recovery: { find, stopped: new AbortController().signal }, known: [2, 3], answer })
      const place = { epoch: 1, tenant: TENANT, runId: RUN }
      async function* frames(): FrameStream {
        yield failureFrame(4, 'worker_lost')
      }
      return { ...known, asked, text: textOf(known.runs.followed(place, frames())) }
    }
    const silent = () => new AppError('unavailable', 'no answer')

    it('D32.7a: go on until the worker that has the run now answers', async () => {
      const answers = [silent(), silent(), 4]
      const { text, opened } = broken([2], () => {
        const answer = answers.shift()
        if (typeof answer !== 'number') throw answer
        return answer
      })
      expect(await text).to.equal('of 2')
      expect(opened).to.deep.equal(['2 after 4', '2 after 4', '2 after 4'])
    })

    it('D32.7a: go to the next worker when that one does not know the run any more', async () => {
      const { text, asked } = broken([2, 3], (epoch) => {
        if (epoch === 2) throw notFound('died')
        return 4
      })
      expect(await text).to.equal('of 3')
      expect(asked).to.deep.equal([1, 2])
    })

    it('end with the failure of the stream when nobody goes on with the run', async () => {
      expect(await broken([undefined], () => 4).text).to.include('"code":"worker_lost"')
    })
  })
})
