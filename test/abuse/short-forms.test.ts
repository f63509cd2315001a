import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'

const WITHIN_MS = 90_000

/** Resolves with the exit code and all that was printed. */
function run(script: string, ...args: string[]): Promise<{ code: number; printed: string }> {
  const path = fileURLToPath(new URL(`../../../scripts/${script}/main.ts`, import.meta.url))
  return new Promise((resolve) => {
    execFile(process.execPath, [path, '--quick', ...args], { timeout: WITHIN_MS }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code ?? -1) : 0, printed: stdout + stderr })
    })
  })
}

/** The promises that are broken; how long /health took is for whoever runs the script by itself, on a machine that does nothing else. */
const brokenOf = (printed: string) =>
  printed.split('\n').filter((line) => /\bBROKEN\b/.test(line) && !/^(longest )?\/health (p99|without)/.test(line))

describe('the abuse and fuzz scripts in their short forms', function () {
  this.timeout(WITHIN_MS + 5_000)

  it('P10: slow writers cannot hurt: /health goes on, and each of them is answered 408', async () => {
    const { printed } = await run('abuse', '--sockets', '300')
    expect(brokenOf(printed), printed).to.deep.equal([])
    expect(printed).to.include('slow headers answered 408')
  })

  it('P12: hostile input never becomes a 5xx, a crash, a stall or a change', async () => {
    const { printed } = await run('fuzz', '--seed', '1')
    expect(brokenOf(printed), printed).to.deep.equal([])
    expect(printed).to.include('generated cases')
  })

  it('a seed that is none is refused, and a seed is always told', async () => {
    const { code, printed } = await run('fuzz', '--seed', 'x')
    expect(code).to.not.equal(0)
    expect(printed).to.include("the seed 'x' is no whole number")
  })
})
