import { expect } from 'chai'
import { RunState } from '../../../shared/work/runs/run-state.ts'

describe('the state of a run', () => {
  it('one that waits is ended by whoever cancels it, at once or when its requests are withdrawn, and only once', () => {
    const state = new RunState()
    expect([state.cancel(), state.isEnded]).to.deep.equal(['caller', false])
    state.end('cancelled')
    expect([state.status, state.cancel()]).to.deep.equal(['cancelled', undefined])
    const late = new RunState()
    expect([late.cancel(true), late.cancel(true), late.cancel()]).to.deep.equal(['caller', undefined, undefined])
    expect(() => late.begin()).to.throw('a run that is stopping cannot become running')
    late.end('cancelled')
    expect(late.isEnded).to.equal(true)
  })

  it('one that runs is ended by the engine, which is told once, whether its requests must be withdrawn or not', () => {
    for (const mustWait of [false, true]) {
      const state = new RunState()
      state.begin()
      expect([state.cancel(mustWait), state.cancel(mustWait)]).to.deep.equal(['engine', undefined])
      expect(state.status).to.equal('running')
    }
  })

  it('is shown as waiting before its turn, while it asks, and where another process goes on with it', () => {
    const state = new RunState()
    expect(state.status).to.equal('waiting')
    state.begin()
    expect([state.beginAsk(), state.beginAsk(), state.status]).to.deep.equal([true, false, 'waiting'])
    state.endAsk()
    state.endAsk()
    expect(state.status).to.equal('running')
    state.abandon()
    expect([state.status, state.isAbandoned, state.cancel()]).to.deep.equal(['waiting', true, undefined])
  })
})
