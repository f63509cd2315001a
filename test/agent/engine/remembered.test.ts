import { expect } from 'chai'
import type { OpenAsk } from '../../../shared/agent/engine/permissions.ts'
import { RememberedTools } from '../../../shared/agent/engine/remembered-tools.ts'
import type { Tool } from '../../../shared/agent/tools/port.ts'
import { call, collect, resourcesOf, SOON, tool, typesOf } from './tool-step-setup.ts'

/** Answers each request with `decision`, and counts them. */
function answering(decision: { allow: boolean; remember?: 'session' }) {
  const asked: string[] = []
  const openAsk: OpenAsk = async ({ toolName }) => {
    asked.push(toolName)
    const decided = Promise.resolve({ how: 'reply', reason: '', ...decision } as const)
    return { id: `perm_${asked.length}`, expiresAt: SOON, decision: decided }
  }
  return { asked, openAsk }
}

const REMEMBER = { allow: true, remember: 'session' } as const

describe('a tool that is allowed for the rest of a session', () => {
  it('is not asked for again, while other tools are', async () => {
    const { asked, openAsk } = answering(REMEMBER)
    const remembered = new RememberedTools()
    const resources = resourcesOf({ tools: [tool('Write'), tool('Edit')], policy: 'ask', openAsk, remembered })
    await collect([call('c1', 'Write')], resources)
    const { events } = await collect([call('c2', 'Write'), call('c3', 'Edit')], resources)
    expect(asked).to.deep.equal(['Write', 'Edit'])
    expect(typesOf(events).filter((type) => type === 'permission_request')).to.have.length(1)
    expect(remembered.entries.map(({ tool_name }) => tool_name)).to.deep.equal(['Write', 'Edit'])
  })

  it('is asked for again when the reply did not say so', async () => {
    const { asked, openAsk } = answering({ allow: true })
    const resources = resourcesOf({ tools: [tool('Write')], policy: 'ask', openAsk, remembered: new RememberedTools() })
    await collect([call('c1', 'Write')], resources)
    await collect([call('c2', 'Write')], resources)
    expect(asked).to.have.length(2)
  })

  it('stays denied under the policy deny', async () => {
    const remembered = new RememberedTools([{ tool_name: 'Write', remembered_at: '2026-11-22T00:00:00.000Z' }])
    const { results } = await collect(
      [call('c1', 'Write')],
      resourcesOf({ tools: [tool('Write')], policy: 'deny', remembered }),
    )
    expect(results[0]).to.include({ isError: true })
  })

  it('D5.4: is never a plan: each one is approved by itself', async () => {
    const { asked, openAsk } = answering(REMEMBER)
    const plan: Tool = { ...tool('ExitPlanMode'), alwaysAsks: true }
    const remembered = new RememberedTools()
    const resources = resourcesOf({ tools: [plan], policy: 'ask', openAsk, remembered })
    await collect([call('c1', 'ExitPlanMode')], resources)
    await collect([call('c2', 'ExitPlanMode')], resources)
    expect([asked.length, remembered.entries]).to.deep.equal([2, []])
  })
})

describe('plan mode', () => {
  const READ: Tool = { ...tool('Read'), isReadOnly: true }
  const EXIT: Tool = { ...tool('ExitPlanMode'), alwaysAsks: true, endsPlanMode: true }
  const TOOLS = [READ, tool('Write'), EXIT]

  it('D5.4: refuses tools that change something, without a permission request, and runs the others', async () => {
    const { asked, openAsk } = answering({ allow: true })
    const resources = resourcesOf({ tools: TOOLS, openAsk, planMode: { isOn: true } })
    const { results } = await collect([call('c1', 'Read'), call('c2', 'Write')], resources)
    expect(results.map(({ isError }) => isError)).to.deep.equal([false, true])
    expect(results[1]?.output).to.include('Show the plan with ExitPlanMode')
    expect(asked).to.deep.equal([])
  })

  it('D5.4: ends when ExitPlanMode is allowed, and not when it is denied', async () => {
    for (const allow of [false, true]) {
      const planMode = { isOn: true }
      const { openAsk } = answering({ allow })
      const resources = { tools: TOOLS, openAsk, planMode }
      await collect([call('c1', 'ExitPlanMode')], resourcesOf({ ...resources, policy: 'ask' }))
      const { results } = await collect([call('c2', 'Write')], resourcesOf(resources))
      expect([planMode.isOn, results[0]?.isError]).to.deep.equal([!allow, !allow])
    }
  })
})
