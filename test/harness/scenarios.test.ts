import { expect } from 'chai'
import type { Scenario } from './scenario.ts'
import { chooseScenarios } from './scenarios.ts'

describe('the scenarios that --only chooses', () => {
  const all = ['P7', 'P13', 'P7'].map((id): Scenario => ({ id, promise: '', run: async () => [] }))
  const chosen = (only?: string) => chooseScenarios(all, only).map(({ id }) => id)

  it('are all without it, and those of each promise that it names, in any case', () => {
    expect(chosen()).to.deep.equal(['P7', 'P13', 'P7'])
    expect(chosen('p7')).to.deep.equal(['P7', 'P7'])
    expect(chosen('P13, P7')).to.have.length(3)
  })

  it('an unknown promise is refused before anything starts, with those that there are', () => {
    expect(() => chosen('P7,P99')).to.throw('no scenario tests P99: choose from P7, P13')
  })
})
