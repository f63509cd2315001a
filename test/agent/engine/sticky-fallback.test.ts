import { expect } from 'chai'
import { failure } from '../../../shared/agent/providers/failures/failures.ts'
import type { ModelPart } from '../../../shared/agent/providers/port.ts'
import { digs, play, says200, scripted, TOO_LONG, talk } from './context/setup.ts'

const OUT_OF_CREDIT: ModelPart[] = [
  { type: 'failure', failure: failure('provider_rejected', 'out_of_credit', 'no credit', { isFailover: true }) },
]

describe('a run that went over to its fallback', () => {
  it('D5.5: stays there, with one warning, and names its model in each turn', async () => {
    const primary = scripted(OUT_OF_CREDIT)
    const fallback = scripted(digs('a'), digs('b'), says200('done'))
    const { events, warnings, done } = await play(primary, { fallback: { provider: fallback, model: 'spare' } })
    expect(warnings.map(({ code }) => code)).to.deep.equal(['provider_failover'])
    expect(primary.requests).to.have.length(1)
    expect(fallback.requests).to.have.length(3)
    const models = events.flatMap((event) => (event.type === 'turn_start' ? [event.model] : []))
    expect(models).to.deep.equal(['m', 'spare', 'spare'])
    expect(done).to.include({ turn_count: 3 })
  })

  it('D5.6: stays there too when the fallback finds the conversation too long', async () => {
    const primary = scripted(OUT_OF_CREDIT)
    const fallback = scripted(TOO_LONG, says200('a summary'), says200('done'))
    const { done } = await play(primary, { messages: talk(20), fallback: { provider: fallback, model: 'spare' } })
    expect(primary.requests).to.have.length(1)
    expect(done).to.include({ turn_count: 1 })
  })

  it('D5.6: stays there too when it went over with the shorter conversation', async () => {
    const primary = scripted(TOO_LONG, says200('a summary'), OUT_OF_CREDIT)
    const fallback = scripted(digs('a'), says200('done'))
    const { done } = await play(primary, { messages: talk(20), fallback: { provider: fallback, model: 'spare' } })
    expect([primary.requests.length, fallback.requests.length]).to.deep.equal([3, 2])
    expect(done).to.include({ turn_count: 2 })
  })
})
