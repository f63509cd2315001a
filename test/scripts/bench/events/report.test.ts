import { expect } from 'chai'
import type { Measured } from '../../../../scripts/bench/events/measure.ts'
import { goalsOf, reportOf } from '../../../../scripts/bench/events/report.ts'
import { outcomeOf } from '../../../../scripts/bench/relay/row.ts'

const measured = (fields: Partial<Measured>): Measured => ({
  readers: 1,
  events: 20,
  expected: 20,
  cpu: new Map([['gateway 1', 0.02]]),
  foreignCpu: 0.5,
  coreWait: 0.1,
  commandsPerSec: 100,
  readsPerSec: 0.4,
  subscribers: 1,
  faulty: 0,
  delays: [4, 6],
  ...fields,
})
const MOST = {
  readers: 1_000,
  subscribers: 2,
  commandsPerSec: 110,
  delays: Array.from({ length: 101 }, (_, i) => i + 1),
}

const outcomes = (most: Partial<Measured>, one: Partial<Measured> = {}) =>
  goalsOf({ most: measured({ ...MOST, ...most }), one: measured(one), gateways: 2 }).map(outcomeOf)

describe('the event bench’s report', () => {
  it('keeps its goals at their bounds', () => {
    expect(outcomes({})).to.deep.equal(['kept', 'kept', 'kept', 'kept', 'kept'])
  })

  it('misses the goal that a measurement breaks, and no other', () => {
    const [delay, order, written, connections, commands] = [0, 1, 2, 3, 4].map((missed) =>
      [0, 1, 2, 3, 4].map((goal) => (goal === missed ? 'missed' : 'kept')),
    )
    expect(outcomes({ delays: MOST.delays.map((ms) => ms + 1) })).to.deep.equal(delay)
    expect(outcomes({ faulty: 1 })).to.deep.equal(order)
    expect(outcomes({}, { faulty: 1 })).to.deep.equal(order)
    expect(outcomes({ events: 19 })).to.deep.equal(written)
    expect(outcomes({}, { events: 19 })).to.deep.equal(written)
    expect(outcomes({ subscribers: 3 })).to.deep.equal(connections)
    expect(outcomes({ commandsPerSec: 111 })).to.deep.equal(commands)
  })

  it('a delay that nothing arrived to measure is not kept', () => {
    expect(outcomes({ delays: [] })[0]).to.equal('not measured')
  })

  it('shows a dash where a process was not there or no event arrived', () => {
    const none = measured({ readers: 0, delays: [] })
    const most = measured({
      ...MOST,
      cpu: new Map([
        ['gateway 1', 0.1],
        ['readers 1', 0.05],
      ]),
    })
    const text = reportOf([none, most], [])
    expect(text).to.match(/^readers +0 +1000$/m)
    expect(text).to.match(/^CPU of gateway 1: s a second +0\.020 +0\.100$/m)
    expect(text).to.match(/^CPU of readers 1: s a second +- +0\.050$/m)
    expect(text).to.match(/^CPU of other work on this machine: s a second +0\.500 +0\.500$/m)
    expect(text).to.match(/^longest wait of a process for a core: s a second +0\.100 +0\.100$/m)
    expect(text).to.match(/^delay, p99: ms +- +100\.0$/m)
    expect(text).to.match(/^delay, max: ms +- +101\.0$/m)
  })
})
