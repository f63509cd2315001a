import { expect } from 'chai'
import { RecentHeads } from '../../../../shared/work/flows/store/recent-heads.ts'

const KNOWN_MS = 3
/** A timer is early by up to a millisecond, more often than not. */
const TRIES = 40

describe('the heads of flows that a process has read', () => {
  it('are forgotten after the whole time', async () => {
    const heads = new RecentHeads(KNOWN_MS, async () => undefined)
    for (let n = 0; n < TRIES; n++) {
      const changedAt = performance.now()
      await heads.forgotten()
      expect(performance.now() - changedAt).to.be.at.least(KNOWN_MS)
    }
  })
})
