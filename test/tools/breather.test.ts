import { expect } from 'chai'
import { createBreather } from '../../shared/tools/breather.ts'
import { longestStall } from '../support/stall.ts'

const WORKS = 64
const STEPS = 40

/** Works for some milliseconds in small steps. */
async function work(): Promise<void> {
  const breathe = createBreather()
  for (let step = 0; step < STEPS; step++) {
    const until = performance.now() + 0.5
    while (performance.now() < until);
    await breathe()
  }
}

describe('breathing in long work', () => {
  it('many works at the same time block the event loop together no longer than one of them', async () => {
    const stall = await longestStall(() => Promise.all(Array.from({ length: WORKS }, work)))
    expect(stall).to.be.lessThan(100)
  })
})
