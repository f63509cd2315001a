import { expect } from 'chai'
import { MongoError, MongoServerError } from 'mongodb'
import { AppError } from '../../../../shared/kernel/errors.ts'
import { createDeadlineSignal, createOperationGuard } from '../../../../shared/platform/store/mongo/guard.ts'
import { failureOf } from '../../../support/failure-of.ts'
import { recordHealth } from '../record-health.ts'

describe('the guard of MongoDB’s operations', () => {
  const isReady = () => true

  it('returns the result and reports an answer', async () => {
    const { health, reports } = recordHealth()
    expect(await createOperationGuard(health, isReady)(async () => 'found')).to.equal('found')
    expect(reports).to.deep.equal(['answered'])
  })

  it('refuses every operation until the database is ready, and after an outage of more than 3 s', async () => {
    const begun: string[] = []
    const operation = async () => void begun.push('begun')
    expect(await failureOf(createOperationGuard(recordHealth().health, () => false)(operation))).to.include({
      kind: 'unavailable',
    })
    expect(await failureOf(createOperationGuard(recordHealth(3_001).health, isReady)(operation))).to.include({
      kind: 'unavailable',
    })
    expect(begun).to.deep.equal([])
    await createOperationGuard(recordHealth(3_000).health, isReady)(operation)
    expect(begun).to.deep.equal(['begun'])
  })

  it('turns an error of the driver into unavailable and reports the failure', async () => {
    const { health, reports } = recordHealth()
    const cause = new MongoError('10.0.0.1 refused')
    const failure = await failureOf(createOperationGuard(health, isReady)(() => Promise.reject(cause)))
    expect(failure).to.be.instanceOf(AppError).and.include({ kind: 'unavailable', cause })
    expect(failure.message).to.not.include('10.0.0.1')
    expect(reports).to.deep.equal(['failed'])
    const others = [
      new MongoServerError({ code: 50, message: 'exceeded time limit' }),
      Object.assign(new Error('This socket has been ended by the other party'), { code: 'EPIPE' }),
      Object.assign(new Error('Cannot call write after a stream was destroyed'), { code: 'ERR_STREAM_DESTROYED' }),
    ]
    for (const other of others)
      expect(await failureOf(createOperationGuard(health, isReady)(() => Promise.reject(other)))).to.include({
        kind: 'unavailable',
        cause: other,
      })
  })

  it('reports no failure when only the caller’s shorter time is over', async () => {
    const { health, reports } = recordHealth()
    const guard = createOperationGuard(health, isReady)
    const waitForAbort = (signal: AbortSignal) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
    expect(await failureOf(guard(waitForAbort, { withinMs: 10 }))).to.include({ kind: 'unavailable' })
    expect(reports).to.deep.equal([])
  })

  it('P2: refuses a command that the caller may no longer write, and reports no failure', async () => {
    const { health, reports } = recordHealth()
    let until = Infinity
    const send = async (signal: AbortSignal) => {
      signal.throwIfAborted()
      until = -Infinity
      signal.throwIfAborted() // The driver sends it again.
    }
    const failure = await failureOf(createOperationGuard(health, isReady)(send, { mayWriteUntil: () => until }))
    expect(failure).to.include({ kind: 'unavailable' })
    expect(reports).to.deep.equal([])
  })

  it('passes a duplicate and a bug on unchanged', async () => {
    const { health, reports } = recordHealth()
    const guard = createOperationGuard(health, isReady)
    const misuse = Object.assign(new TypeError('bug'), { code: 'ERR_INVALID_ARG_TYPE' })
    for (const cause of [new MongoServerError({ code: 11_000 }), new TypeError('bug'), misuse])
      expect(await failureOf(guard(() => Promise.reject(cause)))).to.equal(cause)
    expect(reports).to.deep.equal([])
  })

  it('lets 220 operations run at once, also after some have failed', async () => {
    const guard = createOperationGuard(recordHealth().health, isReady)
    await Promise.all(Array.from({ length: 3 }, () => failureOf(guard(() => Promise.reject(new TypeError('bug'))))))
    const gate = Promise.withResolvers<string>()
    const running = Array.from({ length: 220 }, () => guard(() => gate.promise))
    expect(await failureOf(guard(async () => 'one too many'))).to.include({ kind: 'unavailable' })
    gate.resolve('done')
    await Promise.all(running)
    expect(await guard(async () => 'again')).to.equal('again')
  })
})

describe('the timers of operations', () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length

  it('are cleared when the operation ends, whatever its result', async () => {
    await new Promise(setImmediate) // mocha starts the timer of this test after its first step.
    const before = timers()
    const guard = createOperationGuard(recordHealth().health, () => true)
    await guard(async () => 'found')
    await failureOf(guard(() => Promise.reject(new MongoError('down'))))
    expect(timers()).to.equal(before)
  })
})

describe('the deadline of an operation', () => {
  it('aborts when the time is over', async () => {
    const { signal } = createDeadlineSignal(10)
    expect(() => signal.throwIfAborted()).to.not.throw()
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    expect(() => signal.throwIfAborted()).to.throw('no answer in time')
  })

  it('is noticed by throwIfAborted before its timer fires', () => {
    const { signal, clear } = createDeadlineSignal(10)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20) // As if the process was paused.
    expect(signal.aborted).to.equal(false)
    expect(() => signal.throwIfAborted()).to.throw('no answer in time')
    expect(signal.aborted).to.equal(true)
    clear()
  })

  it('is over at once when no time is left', () => {
    for (const withinMs of [0, -5]) {
      const { signal, clear } = createDeadlineSignal(withinMs)
      expect(() => signal.throwIfAborted()).to.throw('no answer in time')
      clear()
    }
  })
})
