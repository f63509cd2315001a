import { getEventListeners } from 'node:events'
import { mock } from 'node:test'
import { expect } from 'chai'
import { CallWatch } from '../../../shared/agent/providers/call-watch.ts'
import type { ModelLimits } from '../../../shared/agent/providers/limits.ts'

const LIMITS: ModelLimits = {
  connectMs: 5,
  firstByteMs: 100,
  idleMs: 60,
  turnMs: 1_000,
  finishMs: 50,
  maxTurnBytes: 1_000,
  maxEventBytes: 100,
}

const BYTES = Buffer.from('data: x\n\n')

describe('the watch over a model call', () => {
  let nowMs = 0
  let watch: CallWatch
  let caller: AbortController

  const open = (limits: Partial<ModelLimits> = {}) => {
    watch = new CallWatch({ ...LIMITS, ...limits }, caller.signal)
  }

  /** Lets time pass, with every timer on time. */
  const pass = (ms: number) => {
    for (let i = 0; i < ms; i++) {
      nowMs++
      mock.timers.tick(1)
    }
  }

  /** Lets time pass during which the process is stopped: timers fire at its end. */
  const pause = (ms: number) => {
    nowMs += ms
    mock.timers.tick(ms)
  }

  beforeEach(() => {
    nowMs = 10_000
    caller = new AbortController()
    mock.timers.enable({ apis: ['setTimeout'] })
    mock.method(performance, 'now', () => nowMs)
    open()
  })

  afterEach(() => {
    watch.close()
    mock.timers.reset()
    mock.restoreAll()
  })

  it('the first byte must arrive within its limit, measured from the start', () => {
    pass(99)
    watch.beginRead()
    expect(watch.signal.aborted).to.equal(false)
    pass(1)
    expect(watch.breach).to.equal('first_byte')
    expect(watch.signal).to.include({ aborted: true, reason: 'first_byte' })
  })

  it('the idle limit counts from the beginning of a read', () => {
    expect(watch.accept(BYTES, true)).to.equal(true)
    pass(500)
    watch.beginRead()
    pass(59)
    expect(watch.breach).to.equal(undefined)
    pass(61)
    expect(watch.breach).to.equal('idle')
  })

  it('the idle limit counts at once when it is shorter than the limit for the first byte', () => {
    open({ firstByteMs: 900 })
    watch.accept(BYTES, true)
    watch.beginRead()
    pass(120)
    expect(watch.breach).to.equal('idle')
  })

  it('each chunk ends the wait of its read', () => {
    for (let i = 0; i < 8; i++) {
      watch.beginRead()
      pass(50)
      expect(watch.accept(BYTES, true)).to.equal(true)
    }
    expect(watch.breach).to.equal(undefined)
    expect(watch.signal.aborted).to.equal(false)
  })

  it('no limit but that of the turn counts while no read is pending', () => {
    watch.accept(BYTES, true)
    pass(999)
    expect(watch.breach).to.equal(undefined)
    pass(1)
    expect(watch.breach).to.equal('turn')
  })

  it('the limit of the turn counts although chunks arrive', () => {
    for (let i = 0; i < 40; i++) {
      watch.beginRead()
      pass(25)
      watch.accept(Buffer.from('\n'), true)
    }
    expect(watch.breach).to.equal('turn')
  })

  it('a pause of this process of more than 500 ms moves every deadline by its length', () => {
    open({ turnMs: 300 })
    pass(50)
    pause(551) // The timer, due after 100 ms, fires 501 ms late.
    expect(watch.breach).to.equal(undefined)
    pass(2)
    expect(watch.breach).to.equal('first_byte')
  })

  it('a pause moves the deadline of the turn too', () => {
    open({ turnMs: 300 })
    watch.accept(BYTES, true)
    pass(10)
    pause(1_000)
    expect(watch.breach).to.equal(undefined)
    pass(350)
    expect(watch.breach).to.equal('turn')
  })

  it('a shorter delay of a timer moves no deadline', () => {
    pass(50)
    pause(550)
    expect(watch.breach).to.equal('first_byte')
  })

  it('after the last event the response has 250 ms to end', () => {
    watch.accept(BYTES, true)
    watch.expectEnd()
    pass(249)
    expect(watch.breach).to.equal(undefined)
    pass(1)
    expect(watch.breach).to.equal('turn')
  })

  it('the time to end counts at once when every other limit is longer', () => {
    open({ firstByteMs: 900, idleMs: 900, turnMs: 2_000 })
    watch.accept(BYTES, true)
    watch.expectEnd()
    pass(250)
    expect(watch.breach).to.equal('turn')
  })

  it('the time to end is no longer than what is left of the turn', () => {
    open({ turnMs: 150 })
    watch.accept(BYTES, true)
    watch.expectEnd()
    pass(150)
    expect(watch.breach).to.equal('turn')
  })

  it('bytes over a limit end the call, of a stream and of an error body alike', () => {
    expect(watch.accept(Buffer.alloc(101, 'x'), true)).to.equal(false)
    expect(watch).to.have.nested.include({ breach: 'event_bytes', 'signal.reason': 'event_bytes' })
    open()
    expect(watch.accept(Buffer.from('a\n\n'.repeat(33)), false)).to.equal(true)
    expect(watch.accept(Buffer.from('ab'), false)).to.equal(false)
    expect(watch.breach).to.equal('event_bytes')
  })

  it('no request counts as sent before the adapter says so', () => expect(watch.isSent).to.equal(false))

  it('the first breach is kept', () => {
    watch.end('web_page')
    watch.end('idle')
    expect(watch).to.have.nested.include({ breach: 'web_page', 'signal.reason': 'web_page' })
  })

  it("the caller's abort is no breach, and its reason is passed on", () => {
    caller.abort('cancelled')
    expect(watch.breach).to.equal(undefined)
    expect(watch.signal).to.include({ aborted: true, reason: 'cancelled' })
  })

  it('keeps its timer as long as no limit comes before it', () => {
    const { clearTimeout } = globalThis
    let cleared = 0
    globalThis.clearTimeout = () => void cleared++
    watch.restart()
    globalThis.clearTimeout = clearTimeout
    expect(cleared).to.equal(0)
    pass(20)
    watch.expectRest()
    pass(50)
    expect(watch.breach).to.equal('turn')
  })

  it('a caller that aborted before the call aborts it at once', () => {
    caller.abort('cancelled')
    open()
    expect(watch.signal).to.include({ aborted: true, reason: 'cancelled' })
  })

  it('closing ends the request, and leaves no timer and no listener', () => {
    watch.close()
    expect(watch.signal).to.include({ aborted: true, reason: 'closed' })
    expect(getEventListeners(caller.signal, 'abort')).to.be.empty
    pass(2_000)
    expect(watch.breach).to.equal(undefined)
  })

  it('closing an ended call keeps its reason', () => {
    watch.end('idle')
    watch.close()
    expect(watch.signal.reason).to.equal('idle')
  })
})
