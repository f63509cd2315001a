import { expect } from 'chai'
import { runScript } from '../harness/run-script.ts'

// Tests simulation.ts, fleet.ts, client.ts, faults.ts and patch-node.ts: they replace Node's clock, so they run in a process of their own.
const MAIN = new URL('main.ts', import.meta.url)
const WITHIN_MS = 300_000

describe('the simulation', function () {
  this.timeout(WITHIN_MS + 5_000)

  it('100 clusters keep their promises under faults', async () => {
    const { code, printed } = await runScript(MAIN, ['--seeds', '100'], WITHIN_MS)
    expect(code, printed).to.equal(0)
    expect(printed).to.match(/^100 seeds in .* [1-9]\d* with a run that went on elsewhere, 0 failed$/m)
  })

  it('the same seed is the same story, to the last turn', async () => {
    const turns = async () => {
      const { printed } = await runScript(MAIN, ['--seeds', '6', '--threads', '1'], WITHIN_MS)
      return /(\d+) turns/.exec(printed)?.[1]
    }
    const first = await turns()
    expect(Number(first)).to.be.above(1_000)
    expect(await turns()).to.equal(first)
  })

  it('a bug that is planted in the relay is found', async () => {
    const { code, printed } = await runScript(MAIN, ['--bug', 'any order', '--seeds', '20'], WITHIN_MS)
    expect(code, printed).to.equal(0)
    expect(printed).to.match(
      /^found after \d+ seeds: frames are taken in any order \(every frame comes once and in order\)$/m,
    )
  })

  it('refuses a seed that is no number', async () => {
    const { code, printed } = await runScript(MAIN, ['--seed', 'x'], WITHIN_MS)
    expect(code).to.equal(1)
    expect(printed).to.include("'x' is not a whole number")
  })
})
