import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { expect } from 'chai'
import { AnsweredCalls, Calls, packCall, readCall } from '../../../../shared/cluster/relay/wire/calls.ts'
import { MalformedMessage } from '../../../../shared/cluster/relay/wire/records.ts'
import { AppError } from '../../../../shared/kernel/errors.ts'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'
import { failureOf } from '../../../support/failure-of.ts'

const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length

/** Calls epoch 7, where `run` is what the called method does; the first `lost` messages are lost. */
async function callOnce(run: () => unknown, { lost = 0 } = {}): Promise<unknown> {
  const [calls, answered] = [new Calls(), new AnsweredCalls()]
  let sent = 0
  const send = async (id: number) => {
    if (++sent > lost) calls.settle(id, Buffer.from(await answered.answer(1, id, run)))
  }
  return calls.call({ epoch: 7, send: (id) => void send(id), limits: { deadlineMs: 2_000, resendMs: 10 } })
}

describe('calls', () => {
  it('a call carries its method and arguments', () => {
    const body = Buffer.from(packCall('getSession', [DEFAULT_TENANT, 's1']))
    expect(readCall(body)).to.deep.equal({ method: 'getSession', args: [DEFAULT_TENANT, 's1'] })
  })

  it('returns the value of the called method, and null for one that returns nothing', async () => {
    expect(await callOnce(() => ({ a: [1] }))).to.deep.equal({ a: [1] })
    expect(await callOnce(async () => undefined)).to.equal(null)
  })

  it('a call or answer that cannot be read is malformed, and an answer that cannot be read does not settle its call', async () => {
    for (const body of ['', 'no json', '[]', 'null', '{"method":1,"args":[]}', '{"method":"x"}'])
      expect(() => readCall(Buffer.from(body)), body).to.throw(MalformedMessage)
    const calls = new Calls()
    const send = (id: number) => {
      for (const body of ['', 'null', '[]', '{}', '{"error":1}'])
        expect(() => calls.settle(id, Buffer.from(body)), body).to.throw(MalformedMessage)
      calls.settle(id, Buffer.from('{"value":7,"took_ms":1}'))
    }
    expect(await calls.call({ epoch: 7, send })).to.equal(7)
  })

  it('is sent again until it is answered, and runs once however often it was sent', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const [calls, answered] = [new Calls(), new AnsweredCalls()]
    let [sent, runs] = [0, 0]
    const run = async () => {
      runs++
      await promise
      return runs
    }
    const send = async (id: number) => {
      if (++sent === 4) resolve()
      if (sent > 1) calls.settle(id, Buffer.from(await answered.answer(1, id, run)))
    }
    const limits = { deadlineMs: 5_000, resendMs: 10 }
    expect(await calls.call({ epoch: 7, send: (id) => void send(id), limits })).to.equal(1)
    expect([sent >= 4, runs]).to.deep.equal([true, 1])
  })

  it('calls of different processes, and different calls of one process, run separately', async () => {
    const answered = new AnsweredCalls()
    let runs = 0
    const run = () => ++runs
    await Promise.all([answered.answer(1, 1, run), answered.answer(2, 1, run), answered.answer(1, 2, run)])
    expect(runs).to.equal(3)
  })

  it('a refusal reaches the caller with all its fields', async () => {
    const refusal = new AppError('rate_limit', 'full', {
      param: '/a',
      code: 'worker_draining',
      retryAfterSecs: 3,
      status: 418,
    })
    const cause = await failureOf(callOnce(() => Promise.reject(refusal)))
    expect(cause).to.be.instanceOf(AppError).that.includes({
      kind: 'rate_limit',
      message: 'full',
      param: '/a',
      code: 'worker_draining',
      retryAfterSecs: 3,
      status: 418,
    })
  })

  it('of a bug in the called method the caller learns nothing but that there was one', async () => {
    const cause = await failureOf(
      callOnce(() => {
        throw new Error('secret')
      }),
    )
    expect(cause).to.include({ kind: 'internal', message: 'internal error' })
  })

  it('a call without an answer is unavailable after its deadline, and leaves no timer', async () => {
    await new Promise(setImmediate) // From here on the count includes the timeout of this test.
    const before = timers()
    const since = performance.now()
    const call = new Calls().call({ epoch: 7, send: () => {}, limits: { deadlineMs: 50, resendMs: 10 } })
    expect(await failureOf(call)).to.include({ kind: 'unavailable', code: 'worker_silent', retryAfterSecs: 1 })
    expect(performance.now() - since).to.be.at.least(45)
    expect(timers()).to.equal(before)
  })

  it('takes an answer that came in time also when this process was too busy to read it before the deadline', async () => {
    const calls = new Calls()
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const caller = connect((server.address() as AddressInfo).port, '127.0.0.1')
    const [answering] = (await once(server, 'connection')) as [Socket]
    const ids: number[] = []
    caller.on('data', (body) => calls.settle(ids[0] ?? 0, body))
    const call = calls.call({ epoch: 7, send: (id) => ids.push(id), limits: { deadlineMs: 50 } })
    answering.write('{"value":7}')
    for (const until = performance.now() + 100; performance.now() < until; );
    expect(await call.finally(() => caller.destroy() && server.close())).to.equal(7)
  })

  it('an answered call leaves no timer', async () => {
    await new Promise(setImmediate) // From here on the count includes the timeout of this test.
    const before = timers()
    await callOnce(() => 1)
    expect(timers()).to.equal(before)
  })

  it('a message without a subscriber fails only the calls to that process that can be made elsewhere', async () => {
    const calls = new Calls()
    const outcomes: string[] = []
    const make = (name: string, epoch: number, hasAlternative: boolean) =>
      calls.call({ epoch, hasAlternative, send: () => {} }).catch(() => outcomes.push(name))
    const all = [make('with', 7, true), make('without', 7, false), make('other', 8, true)]
    calls.failUndelivered(7)
    await all[0]
    expect(outcomes).to.deep.equal(['with'])
    calls.failAll(7)
    await all[1]
    expect(outcomes).to.deep.equal(['with', 'without'])
    calls.failAll(8)
    await all[2]
    expect(outcomes).to.deep.equal(['with', 'without', 'other'])
  })
})
