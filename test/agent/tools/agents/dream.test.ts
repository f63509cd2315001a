import { expect } from 'chai'
import { createDreamTool } from '../../../../shared/agent/tools/agents/dream.ts'
import type { AgentReport, AgentTask, MemorySource } from '../../../../shared/agent/tools/port.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { contextOf } from '../setup.ts'

type Setting = { history?: string; report?: AgentReport; refusal?: string }

function dreamer({ history = 'user: hi', report, refusal }: Setting = {}) {
  const tasks: AgentTask[] = []
  const kept: string[][] = []
  const memory: MemorySource = {
    history: async () => history,
    keep: async (entries) => void kept.push([...entries]),
  }
  const agents = {
    depth: 0,
    refusal: () => refusal,
    async run(task: AgentTask) {
      tasks.push(task)
      return report ?? { status: 'completed' as const, result: '- likes tea' }
    },
  }
  const dream = (input: JsonObject = {}) => createDreamTool().run(input, contextOf('/nowhere', { memory, agents }))
  return { dream, tasks, kept }
}
const completed = (result: string): Setting => ({ report: { status: 'completed', result } })

describe('Dream', () => {
  it('D5.3: gives the history to a sub-agent without tools and stores the facts that it lists', async () => {
    const { dream, tasks, kept } = dreamer({ history: 'user: I like tea' })
    expect(await dream({ focus: 'drinks' })).to.deep.equal({
      output: 'Kept 1 memory entries:\n- likes tea',
      isError: false,
    })
    expect(kept).to.deep.equal([['likes tea']])
    expect(tasks[0]).to.include({
      description: 'Dream',
      prompt: 'Look for: drinks\n\n<history>\nuser: I like tea\n</history>',
    })
    expect(tasks[0]?.tools).to.deep.equal([])
  })

  it('says in the permission request what it does', () => {
    expect(createDreamTool().describe({})).to.equal('Distil the history into memory entries.')
  })

  it('gives the sub-agent the last 60,000 characters of the history', async () => {
    const { dream, tasks } = dreamer({ history: `old${'x'.repeat(60_000)}` })
    await dream()
    expect(tasks[0]?.prompt).to.equal(`<history>\n${'x'.repeat(60_000)}\n</history>`)
  })

  it('reads lines that begin with - or *, without duplicates, and at most 20 of 500 characters', async () => {
    const listed = dreamer(completed('Here:\n- a \n  *  b\n-no\n- a\n- \n1. c\nnot - this'))
    await listed.dream()
    expect(listed.kept).to.deep.equal([['a', 'b']])
    const many = dreamer(completed(Array.from({ length: 21 }, (_, i) => `- ${i} ${'é'.repeat(600)}`).join('\n')))
    await many.dream()
    expect(many.kept[0]).to.have.length(20)
    expect(many.kept[0]?.[0]).to.equal(`0 ${'é'.repeat(498)}`)
  })

  it('stores nothing and says why when there is no history, no sub-agent or no result', async () => {
    const cases: [Setting, string][] = [
      [{ history: '' }, 'There is no history yet: dream after some conversation.'],
      [{ refusal: 'not now' }, 'not now'],
      [
        { report: { status: 'failed', result: '- a', error: 'out of credit' } },
        'The dream ended early: out of credit.',
      ],
      [{ report: { status: 'cancelled', result: '- a' } }, 'The dream ended early: cancelled.'],
      [completed('nothing'), 'The dream found nothing to keep.'],
    ]
    for (const [setting, output] of cases) {
      const { dream, kept } = dreamer(setting)
      expect(await dream()).to.deep.equal({ output, isError: true })
      expect(kept).to.deep.equal([])
    }
    const nobody = await createDreamTool().run({}, contextOf('/nowhere'))
    expect(nobody).to.deep.include({ isError: true })
    expect(nobody.output).to.match(/^There is no history to dream of/)
  })
})
