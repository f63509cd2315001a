import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect } from 'chai'
import { createHealth } from '../../shared/kernel/health.ts'

/** Waits until `performance.now()` has moved. */
async function tick(): Promise<void> {
  const start = performance.now()
  while (performance.now() === start) await nextTurn()
}

describe('the health of a server', () => {
  it('counts as reachable at first and after each answer', async () => {
    const health = createHealth()
    expect(health.awayMs()).to.equal(0)
    health.failed()
    await tick()
    expect(health.awayMs()).to.be.greaterThan(0)
    health.answered()
    expect(health.awayMs()).to.equal(0)
  })

  it('measures from the first failure, not from the last', async () => {
    const health = createHealth()
    health.failed()
    await tick()
    const before = health.awayMs()
    health.failed()
    expect(health.awayMs()).to.be.at.least(before)
  })
})
