import { expect } from 'chai'
import type { Scenario } from './scenario.ts'
import { chooseScenarios } from './scenarios.ts'

describe('the scenarios that --only chooses', () => {
  const scenario = (id: string, isFullOnly = false): Scenario => ({ id, promise: '', isFullOnly, run: async () => [] })
  const all = [scenario('P7'), scenario('P13'), scenario('P7', true), scenario('P8', true)]
  const chosen = (only?: string, isFull = true) => chooseScenarios(all, { isFull, only }).map(({ id }) => id)

  it('are all without it, and those of each promise that it names, in any case', () => {
    expect(chosen()).to.deep.equal(['P7', 'P13', 'P7', 'P8'])
    expect(chosen('p7')).to.deep.equal(['P7', 'P7'])
    expect(chosen('P13, P7')).to.have.length(3)
  })

  it('are those with a short form without --full; a promise that has none is refused: nothing would have been tested', () => {
    expect(chosen(undefined, false)).to.deep.equal(['P7', 'P13'])
    expect(() => chosen('P7,P8', false)).to.throw('P8 has no short form: add --full')
  })

  it('an unknown promise is refused before anything starts, with those that there are', () => {
    expect(() => chosen('P7,P99')).to.throw('no scenario tests P99: choose from P7, P8, P13')
  })
})
