import { mock } from 'node:test'
import { expect } from 'chai'
import { createProgress } from '../../../../shared/agent/tools/mcp/call.ts'

describe('the progress of a call to an MCP server', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setInterval'] }))
  afterEach(() => mock.timers.reset())

  it('of a burst, the first five reports go on, and then the newest of each interval', () => {
    const seen: number[] = []
    const { report, end } = createProgress((progress) => void seen.push(progress))
    for (let i = 1; i <= 1_000; i++) report(i, 'x')
    expect(seen).to.deep.equal([1, 2, 3, 4, 5])
    mock.timers.tick(200)
    expect(seen).to.deep.equal([1, 2, 3, 4, 5, 1_000])
    mock.timers.tick(2_000)
    report(1_001, 'x')
    for (let i = 2_000; i < 2_010; i++) report(i, 'x')
    end()
    mock.timers.tick(2_000)
    expect(seen).to.deep.equal([1, 2, 3, 4, 5, 1_000, 1_001, 2_000, 2_001, 2_002, 2_003])
  })
})
