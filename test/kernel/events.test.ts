import { expect } from 'chai'
import { errorEvent, isTerminal, RUN_ERROR_CODES, type RunEvent, sessionKept } from '../../shared/kernel/events.ts'

describe('the failure of a run', () => {
  it('D4.8: says for every code what to do next, and keeps message and detail apart', () => {
    expect(RUN_ERROR_CODES).to.have.length(21)
    for (const code of RUN_ERROR_CODES) expect(errorEvent(code, 'x').suggestion, code).to.match(/^[A-Z].+\.$/)
    expect(errorEvent('timeout', 'it took too long', 'turn')).to.include({ error: 'it took too long', detail: 'turn' })
    expect(errorEvent('timeout', 'x')).to.include({ type: 'error', code: 'timeout', detail: '' })
  })

  it('D4.8: is retryable where the same request may succeed later', () => {
    const retryable = RUN_ERROR_CODES.filter((code) => errorEvent(code, 'x').retryable)
    expect(retryable).to.have.members([
      ...['provider_rate_limited', 'provider_unavailable', 'worker_lost', 'worker_draining', 'stream_gap'],
      ...['relay_unavailable', 'storage_unavailable', 'timeout', 'no_room'],
    ])
  })

  it('D32: of a message whose session is stored asks to send it to the same session', () => {
    expect(sessionKept('lost')).to.include({ code: 'worker_lost', retryable: true, session_kept: true })
    expect(sessionKept('lost').suggestion).to.include('same session')
    expect(errorEvent('worker_lost', 'lost')).to.not.have.property('session_kept')
  })
})

describe('the events of a run', () => {
  it('D4.4: end with the last one of a run, a flow or a plan, and with no other', () => {
    const isLast = (type: string) => isTerminal({ type } as RunEvent)
    expect(['done', 'error', 'plan_queued', 'result', 'plan_ended'].every(isLast)).to.equal(true)
    expect(['text', 'turn_end', 'warning', 'subagent_end', 'step_ended'].some(isLast)).to.equal(false)
  })
})
