import { expect } from 'chai'
import { readDocument } from '../../shared/platform/api/document.ts'
import { createContract } from '../platform/api/contract.ts'
import { type Outcome, runScenario } from './run-scenario.ts'
import { type Expected, readScenarios } from './scenario.ts'
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
    for (const { head, steps } of SCENARIOS)
      for (const step of steps)
        if ('event' in step) expect(problemsOfFrame('POST', '/agent/run', step), `${head.name} ${step.id}`).to.equal('')
  })

  for (const { head } of SCENARIOS)
    it(`our client passes "${head.name}": ${head.about}`, async () => {
      const outcome = await runScenario(server.url, head)
      expectOutcome(outcome, head.expect)
      const play = server.play(head.name)
      await play?.over
      expect(play?.problems).to.deep.equal([])
      expect(play?.resent, 'events asked for again').to.equal(0)
    })
})

function expectOutcome({ ids, ...outcome }: Outcome, expected: Expected): void {
  expect(outcome).to.deep.equal(expected)
  const rising = ids.filter((id, i) => id > (ids[i - 1] ?? 0))
  // An error that ends one connection repeats the last number.
  expect(ids.length - rising.length).to.be.at.most(expected.end === 'error' ? 1 : 0)
}
