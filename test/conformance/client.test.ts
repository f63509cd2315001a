import { expect } from 'chai'
import { apiContract } from '../support/api-document.ts'
import { useOpened } from '../support/fixture.ts'
import { type Outcome, runScenario } from './run-scenario.ts'
import { type Head, readScenarios } from './scenario.ts'
import { startConformanceServer } from './server.ts'
import { PLAN_ID } from './work-scenario.ts'

const SCENARIOS = readScenarios()

/** The request whose answer is the stream. */
function streamOf(kind: 'flow' | 'plan' | undefined): [method: string, path: string] {
  if (kind === 'plan') return ['GET', `/plans/${PLAN_ID}/events`]
  return ['POST', kind === 'flow' ? '/flows/total/run' : '/agent/run']
}

describe('the conformance kit', () => {
  const server = useOpened(startConformanceServer)

  it('holds events as the API document describes them', async () => {
    const { problemsOfFrame } = await apiContract()
    for (const { head, steps } of SCENARIOS)
      for (const step of steps)
        if ('event' in step && head.kind !== 'inbox')
          expect(problemsOfFrame(...streamOf(head.kind), step), `${head.name} ${step.id}`).to.equal('')
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

function expectOutcome({ ids, ...outcome }: Outcome, expected: Head['expect']): void {
  expect(outcome).to.deep.equal(expected)
  const rising = ids.filter((id, i) => id > (ids[i - 1] ?? 0))
  // An error that ends one connection repeats the last number.
  expect(ids.length - rising.length).to.be.at.most('end' in expected && expected.end === 'error' ? 1 : 0)
}
