import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'

const MAIN = fileURLToPath(new URL('./main.ts', import.meta.url))
/** Three minutes on a machine of its own. */
const WITHIN_MS = 260_000

/** Resolves with the exit code, -1 for a script that had to be ended, and all that was printed. */
function runChaos(...args: string[]): Promise<{ code: number; printed: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [MAIN, ...args], { timeout: WITHIN_MS }, (error, stdout, stderr) => {
      const code = error ? (typeof error.code === 'number' ? error.code : -1) : 0
      resolve({ code, printed: stdout + stderr })
    })
  })
}

describe('chaos', function () {
  this.timeout(WITHIN_MS + 5_000)

  it('reliability.md §3: what the cluster promises under faults is kept, in the short form, times and sizes aside', async () => {
    const { code, printed } = await runChaos('--short', '--untimed')
    expect(code, printed).to.equal(0)
  })

  it('a promise that there is none of, and a seed that is none, are refused before anything is started', async () => {
    const promise = await runChaos('--only', 'P1,P99')
    expect(promise.code).to.not.equal(0)
    expect(promise.printed).to.include('there is no P99: there are P1, P2, P3')
    const seed = await runChaos('--seed', 'x')
    expect(seed.code).to.not.equal(0)
    expect(seed.printed).to.include("the seed 'x' is no whole number")
  })
})
