// Tests broker.ts, commands.ts and run-starts.ts: a gateway’s broker, with workers that a test plays.

import { expect } from 'chai'
import { RelayBroker } from '../../../../shared/cluster/relay/gateway/broker.ts'
import { RECORD, record } from '../../../../shared/cluster/relay/wire/records.ts'
import { AppError, type ErrorKind } from '../../../../shared/kernel/errors.ts'
import { NO_METRICS } from '../../../../shared/kernel/metrics.ts'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'
import { storeUnavailable } from '../../../../shared/platform/store/unavailable.ts'
import { textOf } from '../../../support/broker-answers.ts'
import { elapsedMs } from '../../../support/elapsed.ts'
import { failureOf } from '../../../support/failure-of.ts'
import { SILENT_LOG } from '../../../support/silent-log.ts'
import { until } from '../../../support/until.ts'
import { worker } from '../../members/member.ts'
import { playWorkers } from '../played-workers.ts'

const TENANT = DEFAULT_TENANT
const SILENT = new Promise<never>(() => {})
const prompt = { prompt: 'hi' }

const refuse = (kind: ErrorKind) => {
  throw new AppError(kind, 'refused')
}

/** A gateway's broker; `answer` is how the workers answer its calls, and may throw a refusal or return `SILENT`. */
function setUp(answer: (epoch: number, method: string) => unknown = () => null) {
  const calls: string[] = []
  const discovered: number[] = []
  const outboxTo = playWorkers({
    caller: 1,
    answer,
    onCall: (epoch, { method }) => calls.push(`${epoch} ${method}`),
    onReply: (epoch, reply) => relay.onRecord(epoch, reply),
  })
  const relay = new RelayBroker({
    transport: {
      outbox: (_role, epoch) => outboxTo(epoch),
    },
    membership: {
      epoch: 1,
      discover: async (epoch) => void discovered.push(epoch),
      isMember: async () => false,
      isRebuilt: async () => true,
      refreshMembers: async () => {},
    },
    owners: {
      claim: async (_session, claim) => claim,
      find: async () => ({ epoch: 2, token: 'a1' }),
      replace: async () => true,
      takeOver: async () => true,
      release: async () => true,
    },
    movedRuns: { find: async () => undefined },
    permissions: {
      open: async () => {},
      decide: async () => ({ isWon: true, state: undefined }),
      find: async () => undefined,
      decision: () => SILENT,
      list: async () => ({ permissions: [], next_cursor: null }),
      forget: async () => {},
    },
    jobs: [],
    isBusAway: () => false,
    metrics: NO_METRICS,
    log: SILENT_LOG,
  })
  return { relay, broker: relay.broker, calls, discovered }
}

/** The random numbers that draw the first and then the last of two workers. */
async function drawingBoth<T>(act: () => Promise<T>): Promise<T> {
  const { random } = Math
  let isFirst = false
  Math.random = () => {
    isFirst = !isFirst
    return isFirst ? 0 : 0.99
  }
  try {
    return await act()
  } finally {
    Math.random = random
  }
}

describe('gateway’s broker: starting a run', () => {
  it('goes to the less loaded of two workers, where runs that were started since the last list count', async () => {
    const { relay, broker, calls } = setUp()
    relay.onMembers([worker(2), worker(3, { load: 1 })])
    await drawingBoth(async () => {
      for (let i = 0; i < 3; i++) await broker.startRun(TENANT, prompt)
    })
    expect(calls).to.deep.equal(['2 startRun', '2 startRun', '3 startRun'])
  })

  it('runs that are started at the same time are spread evenly: each counts before its worker has accepted it', async () => {
    const { relay, broker, calls } = setUp()
    relay.onMembers([worker(2), worker(3)])
    await drawingBoth(() => Promise.all([1, 2, 3, 4].map(() => broker.startRun(TENANT, prompt))))
    expect(calls.sort()).to.deep.equal(['2 startRun', '2 startRun', '3 startRun', '3 startRun'])
  })

  it('is tried at a third worker when two are silent', async function () {
    this.timeout(10_000)
    const asked = new Set<number>()
    const { relay, broker } = setUp((epoch, method) => {
      if (method === 'startRun') asked.add(epoch)
      return method === 'startRun' && asked.size < 3 ? SILENT : null
    })
    relay.onMembers([worker(2), worker(3), worker(4)])
    await broker.startRun(TENANT, prompt)
    expect([...asked].sort()).to.deep.equal([2, 3, 4])
  })

  it('a run that a worker refused does not count there', async () => {
    const { relay, broker, calls } = setUp(() => (calls.length === 1 ? refuse('rate_limit') : null))
    relay.onMembers([worker(2, { load: 1 }), worker(3)])
    await drawingBoth(async () => {
      for (let i = 0; i < 3; i++) await broker.startRun(TENANT, prompt)
    })
    expect(calls).to.deep.equal(['3 startRun', '2 startRun', '3 startRun', '3 startRun'])
  })

  it('a full or unavailable worker is followed by the next one; any other refusal is final', async () => {
    for (const kind of ['rate_limit', 'unavailable'] as const) {
      const { relay, broker, calls } = setUp(() => (calls.length === 1 ? refuse(kind) : null))
      relay.onMembers([worker(2), worker(3)])
      await broker.startRun(TENANT, prompt)
      expect(new Set(calls), kind).to.deep.equal(new Set(['2 startRun', '3 startRun']))
    }
    const { relay, broker, calls } = setUp(() => refuse('not_found'))
    relay.onMembers([worker(2), worker(3)])
    expect(await failureOf(broker.startRun(TENANT, prompt))).to.include({ kind: 'not_found' })
    expect(calls).to.have.length(1)
  })

  it('D36.1: what one worker refuses for the store’s sake is not asked of another', async () => {
    const { relay, broker, calls } = setUp(() => {
      throw storeUnavailable('away')
    })
    relay.onMembers([worker(2), worker(3)])
    expect(await failureOf(broker.startRun(TENANT, prompt))).to.include({ status: 503, code: 'storage_unavailable' })
    expect(calls).to.have.length(1)
  })

  it('D36.1: a worker that says that it carries the call out is not left for another one', async () => {
    const answered = Promise.withResolvers<null>()
    const { relay, broker, calls } = setUp(() => answered.promise)
    relay.onMembers([worker(2), worker(3)])
    const starting = broker.startRun(TENANT, prompt)
    const isAsked = async () => calls.length > 0
    await until(isAsked, { what: 'a worker to be asked' })
    const at = Number(calls[0]?.split(' ')[0])
    relay.onRecord(at, { ...record(RECORD.working, { stream: 1 }), body: Buffer.alloc(0) })
    await until(() => calls.length > 2, { what: 'the time of a silent worker to be over' })
    answered.resolve(null)
    await starting
    expect(new Set(calls)).to.deep.equal(new Set([`${at} startRun`]))
  })

  it('when all workers refuse, the last refusal is the answer; without a worker it is 503', async () => {
    const { relay, broker, calls } = setUp(() => refuse('rate_limit'))
    expect(await failureOf(broker.startRun(TENANT, prompt))).to.include({ status: 503 })
    relay.onMembers([worker(2), worker(3), worker(4)])
    expect(await failureOf(broker.startRun(TENANT, prompt))).to.include({ status: 429 })
    expect(calls).to.have.length(3)
    expect(relay.streams.size).to.equal(0)
  })

  it('a worker without a subscription is left for the next one at once, and the run is cancelled there', async () => {
    const { relay, broker, calls } = setUp((epoch, method) => {
      if (method !== 'startRun' || calls.length > 1) return null
      setImmediate(() => relay.onUndelivered(epoch))
      return SILENT
    })
    relay.onMembers([worker(2), worker(3)])
    const since = elapsedMs()
    await broker.startRun(TENANT, prompt)
    expect(elapsedMs() - since).to.be.lessThan(450) // Without the report it would be 500 ms.
    await new Promise(setImmediate)
    const [first, second] = calls.filter((call) => call.endsWith('startRun')).map((call) => call.split(' ')[0])
    expect(second).not.to.equal(first)
    expect(calls).to.have.members([`${first} startRun`, `${first} cancelRun`, `${second} startRun`])
    expect(relay.streams.size).to.equal(1)
  })

  it('after close no stream is opened any more', async () => {
    const { relay, broker, calls } = setUp()
    relay.onMembers([worker(2)])
    relay.close()
    for (const open of [
      () => broker.startRun(TENANT, prompt),
      () => broker.sendMessage(TENANT, 's1', prompt),
      () => broker.followRun(TENANT, 'run_00000002', 0),
    ]) {
      expect(await failureOf(open())).to.include({ status: 503 })
    }
    expect(calls).to.deep.equal([])
  })
})

describe('gateway’s broker: a worker that does not answer', () => {
  const runOf = (epoch: number) => ({
    run_id: `run_${epoch.toString(16).padStart(32, '0')}`,
    ...{ status: 'running', started_at: '2026-11-22T10:00:00.000Z', ended_at: null, event_count: 1 },
  })
  const pageOf = (epoch: number) => ({ runs: [runOf(epoch)], next_cursor: null })

  it('D4.5g: the runs of the others are listed, and the list says that it is incomplete', async () => {
    const { relay, broker } = setUp((epoch) => (epoch === 2 ? SILENT : pageOf(epoch)))
    relay.onMembers([worker(2), worker(3), worker(4, { role: 'executor' })])
    const page = await broker.listRuns(TENANT, { limit: 50 })
    expect(page.runs.map(({ run_id }) => run_id)).to.have.members([runOf(3).run_id, runOf(4).run_id])
    expect(page).to.include({ next_cursor: null, incomplete: true })
  })

  it('D4.5g: the list is complete when a worker is lost meanwhile, and 503 when no worker answers', async () => {
    const { relay, broker } = setUp((epoch) => (epoch === 2 ? SILENT : pageOf(epoch)))
    relay.onMembers([worker(2), worker(3)])
    const listing = broker.listRuns(TENANT, { limit: 50 })
    await new Promise(setImmediate)
    relay.onMembers([worker(3)])
    relay.onMemberLost(2)
    expect(await listing).to.deep.equal(pageOf(3))
    const silent = setUp(() => SILENT)
    silent.relay.onMembers([worker(2), worker(3)])
    expect(await failureOf(silent.broker.listRuns(TENANT, { limit: 50 }))).to.include({ status: 503 })
  })

  it('a session is created on the next worker at once when the first has no subscription', async () => {
    const { relay, broker, calls } = setUp((epoch, method) => {
      if (method !== 'createSession' || !calls[0]?.startsWith(`${epoch} `)) return { session_id: 's1' }
      setImmediate(() => relay.onUndelivered(epoch))
      return SILENT
    })
    relay.onMembers([worker(2), worker(3)])
    const since = elapsedMs()
    await broker.createSession(TENANT, 's1')
    expect(elapsedMs() - since).to.be.lessThan(900) // Without the report it would be 1 s.
    expect(calls.filter((call) => call.endsWith('createSession'))).to.have.length(2)
  })
})

describe('gateway’s broker: the loss of a worker', () => {
  it('ends its streams with worker_lost and no other', async () => {
    const { relay, broker } = setUp()
    relay.onMembers([worker(2)])
    const lost = await broker.startRun(TENANT, prompt)
    relay.onMembers([worker(3)])
    await broker.startRun(TENANT, prompt)
    relay.onMemberLost(2)
    expect(await textOf(lost.frames)).to.include('"code":"worker_lost"')
    expect(relay.streams.size).to.equal(1)
  })

  it('answers calls for its runs with 404 at once', async () => {
    const { relay, broker } = setUp(() => SILENT)
    relay.onMembers([worker(2)])
    const since = elapsedMs()
    const call = failureOf(broker.getRun(TENANT, 'run_00000002'))
    await new Promise(setImmediate)
    relay.onMembers([])
    relay.onMemberLost(2)
    expect(await call).to.include({ status: 404 })
    expect(elapsedMs() - since).to.be.lessThan(900)
  })

  it('a run of an unknown worker is 404 after the members were listed again', async () => {
    const { broker, calls, discovered } = setUp()
    expect(await failureOf(broker.getRun(TENANT, 'run_0000000c'))).to.include({ status: 404 })
    expect([calls, discovered]).to.deep.equal([[], [12]])
  })
})
