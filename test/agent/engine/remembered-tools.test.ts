import { expect } from 'chai'
import { RememberedTools } from '../../../shared/agent/engine/remembered-tools.ts'

const AT = '2026-11-22T00:00:00.000Z'
const WRITE = { tool_name: 'Write', remembered_at: AT }
const EDIT = { tool_name: 'Edit', remembered_at: AT }

describe('the tools that are remembered', () => {
  it('are those that are given, and those that are added, from the first time on', () => {
    const remembered = new RememberedTools([WRITE])
    remembered.add('Write')
    remembered.add('Edit')
    expect(remembered.entries.map(({ tool_name }) => tool_name)).to.deep.equal(['Write', 'Edit'])
    expect(remembered.entries[0]).to.deep.equal(WRITE)
    expect(['Write', 'Edit', 'Bash'].map((name) => remembered.has(name))).to.deep.equal([true, true, false])
  })

  it('are forgotten by name or all together, and counted', () => {
    const remembered = new RememberedTools([WRITE, EDIT])
    expect(remembered.forget('Bash')).to.equal(0)
    expect(remembered.forget('Write')).to.equal(1)
    expect(remembered.entries).to.deep.equal([EDIT])
    remembered.add('Bash')
    expect([remembered.forget(), remembered.forget(), remembered.entries]).to.deep.equal([2, 0, []])
  })
})
