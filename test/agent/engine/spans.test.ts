// Tests tool-step.ts and sub-agents.ts: the spans of tool calls and of sub-agents.

import { expect } from 'chai'
import { fail, succeed } from '../../../shared/agent/tools/port.ts'
import { errorEvent } from '../../../shared/kernel/events.ts'
import { type Attributes, recordSpansWith } from '../../../shared/kernel/trace.ts'
import { setUp, TASK } from './sub-agents-setup.ts'
import { call, collect, resourcesOf, tool } from './tool-step-setup.ts'

type Ended = { name: string; attributes: Attributes | undefined; errorType: string | undefined }

describe('the spans of a run', () => {
  let ended: Ended[]
  beforeEach(() => {
    ended = []
    const context = { traceId: '1'.repeat(32), spanId: '2'.repeat(16), isSampled: true }
    recordSpansWith({
      start: (name, { attributes }) => ({
        ...{ context, set() {}, rename() {} },
        end: (errorType) => ended.push({ name, attributes, errorType }),
      }),
    })
  })
  afterEach(() => recordSpansWith(undefined))

  it('D15.2: a tool call names the tool and its id, and one with an error is marked', async () => {
    const tools = [tool('Read', async () => succeed('x')), tool('Bash', async () => fail('exit code 1'))]
    await collect([call('c1', 'Read')], resourcesOf({ tools }))
    await collect([call('c2', 'Bash')], resourcesOf({ tools }))
    const attributes = (name: string, id: string) => ({
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': name,
      'gen_ai.tool.call.id': id,
    })
    expect(ended).to.deep.equal([
      { name: 'execute_tool Read', attributes: attributes('Read', 'c1'), errorType: undefined },
      { name: 'execute_tool Bash', attributes: attributes('Bash', 'c2'), errorType: 'tool_error' },
    ])
  })

  it('D15.2: a sub-agent that does not complete is marked with its status', async () => {
    await setUp().agents.run(TASK)
    await setUp({ events: [errorEvent('timeout', 'why')] }).agents.run(TASK)
    await setUp({ events: [errorEvent('cancelled', 'why')] }).agents.run(TASK)
    expect(ended.map(({ name, errorType }) => [name, errorType])).to.deep.equal(
      [undefined, 'failed', 'cancelled'].map((errorType) => ['invoke_agent sub-agent', errorType]),
    )
  })
})
