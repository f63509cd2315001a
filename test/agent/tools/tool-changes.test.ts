import { expect } from 'chai'
import type { Tool } from '../../../shared/agent/tools/port.ts'
import { createToolChanges } from '../../../shared/agent/tools/tool-changes.ts'
import { AppError } from '../../../shared/kernel/errors.ts'

const tool = (name: string) => ({ name }) as Tool

describe('changes of the tools of MCP servers', () => {
  const open = (failures: unknown[]) => {
    const lines: string[] = []
    const calls: string[] = []
    const registry = {
      remove: (names: readonly string[]) => void calls.push(`remove ${names.join()}`),
      async add(tools: readonly Tool[]) {
        const failure = failures.shift()
        if (failure !== undefined) throw failure
        calls.push(`add ${tools.map(({ name }) => name).join()}`)
        return tools.some(({ name }) => name === 'odd') ? ['odd is left out'] : []
      },
    }
    const note = (message: string) => void lines.push(message)
    return { calls, lines, change: createToolChanges(registry, { warn: note, error: note }, [1, 1]) }
  }

  it('wait while the server checks too many schemas, and are then applied in their order', async () => {
    const busy = () => new AppError('unavailable', 'too many schemas')
    const { calls, lines, change } = open([busy(), busy()])
    await Promise.all([
      change({ tools: [tool('a'), tool('odd')], gone: ['x'] }),
      change({ tools: [tool('b')], gone: ['a'] }),
    ])
    expect(calls).to.deep.equal(['remove x', 'add a,odd', 'remove a', 'add b'])
    expect(lines).to.deep.equal(['odd is left out'])
  })

  it('that fail otherwise are logged, and do not stop those that follow', async () => {
    const { calls, lines, change } = open([new Error('broken')])
    await change({ tools: [tool('a')], gone: [] })
    await change({ tools: [tool('b')], gone: [] })
    expect(calls).to.deep.equal(['remove ', 'remove ', 'add b'])
    expect(lines).to.deep.equal(['the new tools of an MCP server cannot be offered'])
  })
})
