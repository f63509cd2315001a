import { expect } from 'chai'
import { createAgentTools } from '../../../../shared/agent/tools/agents/agents.ts'
import type { AgentReport, AgentTask, SubAgents } from '../../../../shared/agent/tools/port.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { callerOf } from '../setup.ts'

const DONE: AgentReport = { status: 'completed', result: 'the answer' }

/** Sub-agents that report what `reports` holds under the description of their task. */
function agentsWith(reports: Record<string, AgentReport>, more: Partial<SubAgents> = {}) {
  const tasks: AgentTask[] = []
  const agents: SubAgents = {
    depth: 0,
    refusal: () => undefined,
    async run(task) {
      tasks.push(task)
      return reports[task.description] ?? DONE
    },
    ...more,
  }
  return { agents, tasks }
}

const call = (name: string, input: JsonObject, agents: SubAgents) =>
  callerOf(createAgentTools(), '/nowhere')(name, input, { agents })
const task = (description: string) => ({ description, prompt: `do ${description}` })

describe('Agent', () => {
  it('D5.3: passes its task to a sub-agent and returns its last message', async () => {
    const { agents, tasks } = agentsWith({})
    const input = { ...task('look'), tools: ['Read'] }
    expect(await call('Agent', input, agents)).to.deep.equal({ output: 'the answer', isError: false })
    expect(tasks).to.deep.equal([input])
  })

  it('names the task in the permission request', () => {
    const [agent] = createAgentTools()
    expect(agent?.describe(task('look'))).to.equal('Start a sub-agent: look')
  })

  it('returns the refusal and starts nothing when no sub-agent may start', async () => {
    const { agents, tasks } = agentsWith({}, { refusal: () => 'not now' })
    expect(await call('Agent', task('look'), agents)).to.deep.equal({ output: 'not now', isError: true })
    expect(tasks).to.deep.equal([])
  })

  const REPORTS: [string, AgentReport, string, boolean][] = [
    ['completes without a message', { status: 'completed', result: '' }, 'It ended without an answer.', false],
    [
      'fails',
      { status: 'failed', result: 'so far', error: 'out of credit' },
      'The sub-agent failed: out of credit.\nIts last message: so far',
      true,
    ],
    ['is cancelled', { status: 'cancelled', result: '' }, 'The sub-agent was cancelled: no reason was given.', true],
  ]
  for (const [what, report, output, isError] of REPORTS) {
    it(`says so when the sub-agent ${what}`, async () => {
      const { agents } = agentsWith({ look: report })
      expect(await call('Agent', task('look'), agents)).to.deep.equal({ output, isError })
    })
  }
})

describe('Team', () => {
  const team = createAgentTools()[1] ?? expect.fail('no Team')
  const ofSize = (length: number) => ({ agents: Array.from({ length }, (_, i) => task(`t${i + 1}`)) })

  it('D5.3: has at most 8 agents', () => {
    expect(team.problemWith?.(ofSize(8))).to.equal(undefined)
    expect(team.problemWith?.(ofSize(9))).to.equal(
      'A Team has at most 8 agents, not 9: split the work into several Teams.',
    )
    expect(team.describe(ofSize(2))).to.equal('Start 2 sub-agents: t1; t2')
  })

  it('runs all tasks at the same time and returns each result under its description', async () => {
    const started: string[] = []
    const all = Promise.withResolvers<void>()
    const { agents } = agentsWith(
      {},
      {
        async run({ description }) {
          started.push(description)
          if (started.length === 2) all.resolve()
          await all.promise
          return DONE
        },
      },
    )
    expect(await call('Team', ofSize(2), agents)).to.deep.equal({
      output:
        '## 1. t1 (completed)\n<result>\nthe answer\n</result>\n\n## 2. t2 (completed)\n<result>\nthe answer\n</result>',
      isError: false,
    })
  })

  it('names the tasks that failed; its outcome is an error only when all failed', async () => {
    const failed: AgentReport = { status: 'failed', result: '', error: 'x' }
    const some = await call('Team', ofSize(2), agentsWith({ t2: failed }).agents)
    expect(some.isError).to.equal(false)
    expect(some.output).to.match(/^1 of 2 did not succeed: t2\.\n\n## 1\. t1/)
    const none = await call('Team', ofSize(2), agentsWith({ t1: failed, t2: failed }).agents)
    expect(none.isError).to.equal(true)
    expect(none.output).to.match(/^2 of 2 did not succeed: t1, t2\./)
  })

  it('D5.3: is refused to a sub-agent, and when the tasks may not start', async () => {
    const inner = agentsWith({}, { depth: 1 })
    expect((await call('Team', ofSize(1), inner.agents)).output).to.match(/^A sub-agent cannot start a Team/)
    const full = agentsWith({}, { refusal: (tasks) => `${tasks.length} are too many` })
    expect(await call('Team', ofSize(3), full.agents)).to.deep.equal({ output: '3 are too many', isError: true })
    expect([...inner.tasks, ...full.tasks]).to.deep.equal([])
  })
})
