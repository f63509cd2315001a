import { expect } from 'chai'
import { readDocument } from '../../shared/platform/api/document.ts'
import { createContract } from '../platform/api/contract.ts'
import { type Outcome, runScenario } from './run-scenario.ts'
import { readScenarios, type Scenario } from './scenario.ts'
import { type ConformanceServer, startConformanceServer } from './server.ts'

const SCENARIOS = readScenarios()

describe('the conformance kit', () => {
  let server: ConformanceServer
  before(async () => {
    server = await startConformanceServer()
  })
  after(() => server.close())

  it('holds events as the API document describes them', async () => {
    const { problemsOfFrame } = await readDocument({ basePath: '/v1', authentication: 'oidc' }).then(createContract)
    for (const { name, steps } of SCENARIOS)
      for (const step of steps)
        if ('event' in step)
          expect(problemsOfFrame('POST', '/agent/run', step as never), `${name} ${step.id}`).to.equal('')
  })

  for (const scenario of SCENARIOS)
    it(`our client passes "${scenario.name}": ${scenario.about}`, async () => {
      const outcome = await runScenario(server.url, scenario)
      expectOutcome(outcome, scenario)
      const play = server.play(scenario.name)
      await play?.over
      expect(play?.problems).to.deep.equal([])
      expect(play?.resent, 'events asked for again').to.equal(0)
    })
})

function expectOutcome({ ids, ...outcome }: Outcome, { expect: expected }: Scenario): void {
  expect(outcome).to.deep.equal(expected)
  const rising = ids.filter((id, i) => id > (ids[i - 1] ?? 0))
  // An error that ends one connection repeats the last number.
  expect(ids.length - rising.length).to.be.at.most(expected.end === 'error' ? 1 : 0)
}
