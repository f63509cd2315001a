import { expect } from 'chai'
import { drainGateway } from '../../services/gateway/drain.ts'

/** Runs a drain and returns its steps with their times. */
async function stepsOf(drainMs: number): Promise<unknown[]> {
  const steps: unknown[] = []
  await drainGateway(drainMs, {
    relay: { drain: async (times) => void steps.push(['relay', times]) },
    http: { drain: () => steps.push(['http']), close: async (...times) => void steps.push(['close', ...times]) },
    witness: { settled: async () => void steps.push(['records']) },
  })
  return steps
}

describe('draining a gateway', () => {
  for (const [drainMs, graceMs, streamsMs, closeMs] of [
    [30_000, 5_000, 24_000, 1_000],
    [12_000, 2_000, 9_000, 1_000],
    [3_000, 500, 2_000, 500],
    [0, 0, 0, 0],
  ] as const) {
    it(`D1.3 DRAIN_SECS: of ${drainMs} ms, at most a sixth is for the load balancer, at most a second for the last frames`, async () => {
      const [http, relay, close] = await stepsOf(drainMs)
      expect([http, relay]).to.deep.equal([['http'], ['relay', { graceMs, streamsMs }]])
      const [, ofStreams, ofAnswers] = close as [string, number, number]
      expect(ofStreams).to.equal(closeMs)
      expect(ofAnswers, 'what is left of the whole').to.be.within(drainMs - 1_000, drainMs)
    })
  }

  it('D20.4: waits for the ends that it still has to record, after the last stream may have added one', async () => {
    const steps = await stepsOf(0)
    expect(steps.map((step) => (step as string[])[0])).to.deep.equal(['http', 'relay', 'close', 'records'])
  })
})
