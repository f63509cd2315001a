import { expect } from 'chai'
import { WorkerCalls } from '../../../../shared/cluster/relay/gateway/worker-calls.ts'
import { readCall } from '../../../../shared/cluster/relay/wire/calls.ts'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'
import { failureOf } from '../../../support/failure-of.ts'

/** The calls of a gateway that knows these workers. `sent` has each request once, also when it was repeated. */
function setUp({ alive = [1], isBusAway = false } = {}) {
  const sent = new Map<number, string>()
  const calls = new WorkerCalls({
    isAlive: (epoch) => alive.includes(epoch),
    send: (epoch, { stream, body }) => {
      const { method, args } = readCall(Buffer.from(body ?? ''))
      sent.set(stream, `${epoch} ${method} ${args.join(' ')}`)
    },
    isBusAway: () => isBusAway,
  })
  const answer = (id: number, body: object) => calls.pending.settle(id, Buffer.from(JSON.stringify(body)))
  return { calls, sent: () => [...sent.values()], answer }
}

const TENANT = DEFAULT_TENANT
describe('the calls of a gateway to workers', () => {
  it('return the answer of the worker, and throw its refusal', async () => {
    const { calls, sent, answer } = setUp()
    const [first, second] = [1, 2].map(() => calls.call({ epoch: 1 }, 'cancelRun', [TENANT, 'run_1']))
    expect(sent()).to.deep.equal(Array(2).fill(`1 cancelRun ${TENANT} run_1`))
    answer(2, { error: { kind: 'not_found', message: 'no run', status: 404 } })
    answer(1, { value: null })
    expect(await first).to.equal(null)
    expect(await failureOf(second ?? Promise.resolve())).to.include({ kind: 'not_found', message: 'no run' })
  })

  it('fail at once while the bus is away, without a request', async () => {
    const { calls, sent } = setUp({ isBusAway: true })
    expect(await failureOf(calls.call({ epoch: 1 }, 'cancelRun', [TENANT, 'run_1']))).to.include({
      ...{ kind: 'unavailable', retryAfterSecs: 2 },
    })
    expect(sent()).to.deep.equal([])
  })

  it('in the background are made while the bus is away, too', () => {
    const { calls, sent } = setUp({ isBusAway: true })
    calls.callInBackground(1, 'cancelRun', [TENANT, 'run_1'])
    expect(sent()).to.have.length(1)
    calls.pending.close()
  })

  it('end at their deadline, when their worker is lost, and when this process leaves', async () => {
    const { calls } = setUp()
    const call = (epoch: number, deadlineMs?: number) =>
      failureOf(calls.call({ epoch, ...(deadlineMs && { deadlineMs }) }, 'cancelRun', [TENANT, 'r']))
    const [late, lost, left] = [call(1, 1), call(2), call(3)]
    calls.pending.failAll(2)
    expect(await lost).to.include({ code: 'worker_silent' })
    expect(await late).to.include({ code: 'worker_silent' })
    calls.pending.close()
    expect(await left).to.include({ code: 'worker_silent' })
  })

  it('that can be made elsewhere fail at once without a subscriber; others wait for the worker', async () => {
    const { calls, answer } = setUp()
    const [movable, fixed] = [true, false].map((hasAlternative) =>
      calls.call({ epoch: 1, hasAlternative }, 'cancelRun', [TENANT, 'r']),
    )
    calls.pending.failUndelivered(1)
    expect(await failureOf(movable ?? Promise.resolve())).to.include({ code: 'worker_silent' })
    answer(2, { value: null })
    expect(await fixed).to.equal(null)
  })

  it('without an answer mean a lost worker only when that is no member any more', async () => {
    const { calls } = setUp({ alive: [1] })
    const silent = await failureOf(calls.call({ epoch: 1, deadlineMs: 1 }, 'cancelRun', [TENANT, 'r']))
    expect([calls.isWorkerLost(1, silent), calls.isWorkerLost(2, silent)]).to.deep.equal([false, true])
    expect(calls.isWorkerLost(2, new Error('refused'))).to.equal(false)
  })
})
