import { expect } from 'chai'
import { AgentTree } from '../../../shared/agent/engine/account.ts'
import type { CallProgress } from '../../../shared/agent/engine/call-progress.ts'
import { keptSubAgents, narrow } from '../../../shared/agent/engine/sub-agents.ts'
import type { ToolBox } from '../../../shared/agent/tools/port.ts'
import { boxOf, lineageOf, setUp, TASK } from './sub-agents-setup.ts'

describe('the sub-agents of one agent', () => {
  it('D5.3: nine run one after another, since each one that has ended makes room', async () => {
    const { agents, tree } = setUp()
    for (let n = 1; n <= 9; n++) {
      expect(agents.refusal([TASK]), `before sub-agent ${n}`).to.equal(undefined)
      expect(await agents.run(TASK)).to.deep.equal({ status: 'completed', result: 'answer' })
    }
    expect(tree.started).to.equal(9)
  })

  it('D5.3: one that fails by a bug makes room too', async () => {
    const { agents } = setUp({ gate: Promise.reject(new Error('a bug')) })
    for (let n = 1; n <= 9; n++) {
      expect(agents.refusal([TASK])).to.equal(undefined)
      await agents.run(TASK).catch(() => {})
    }
    expect(agents.refusal(Array.from({ length: 8 }, () => TASK))).to.equal(undefined)
  })

  it('D5.3: eight run at the same time, and the ninth is refused until one has ended', async () => {
    const gate = Promise.withResolvers<void>()
    const { agents } = setUp({ gate: gate.promise })
    const running = Array.from({ length: 7 }, () => agents.run(TASK))
    expect(agents.refusal([TASK])).to.equal(undefined)
    expect(agents.refusal([TASK, TASK])).to.match(/8 sub-agents at a time, and 7 are at work/)
    running.push(agents.run(TASK))
    expect(agents.refusal([TASK])).to.match(/8 sub-agents at a time, and 8 are at work/)
    gate.resolve()
    await Promise.all(running)
    expect(agents.refusal([TASK])).to.equal(undefined)
  })

  it('D5.3: a run starts 64 in all its agents together, and no more', () => {
    const tree = new AgentTree()
    tree.started = 62
    const { agents } = setUp({ tree })
    expect(agents.refusal([TASK, TASK])).to.equal(undefined)
    expect(agents.refusal([TASK, TASK, TASK])).to.match(/64 sub-agents, and 62 were started/)
    tree.started = 64
    expect(agents.refusal([TASK])).to.match(/64 sub-agents, and 64 were started/)
  })

  it('D5.3: start at depth 0 and 1, and not at depth 2', () => {
    const tree = new AgentTree()
    const depths = [undefined, lineageOf(tree, 1), lineageOf(tree, 2)].map((caller) => setUp({ tree, caller }).agents)
    expect(depths.map(({ depth }) => depth)).to.deep.equal([0, 1, 2])
    expect(depths.map((agents) => agents.refusal([TASK]) === undefined)).to.deep.equal([true, true, false])
    expect(depths[2]?.refusal([TASK])).to.match(/2 deep and no deeper/)
  })

  it('a task that names an unknown tool is refused with the names of the tools', () => {
    const { agents } = setUp({ toolBox: boxOf('Read', 'Glob') })
    expect(agents.refusal([{ ...TASK, tools: ['Raed', 'Golb'] }])).to.match(/^There is no tool Raed, Golb\./)
    expect(agents.refusal([{ ...TASK, tools: ['Read', 'Raed'] }])).to.equal(
      'There is no tool Raed. The tools are: Read, Glob.',
    )
    expect(agents.refusal([{ ...TASK, tools: ['Read'] }])).to.equal(undefined)
  })
})

describe('the sub-agents of a call that another process had begun', () => {
  it('D32.9c: one that had ended has its report, one that may have changed something is a failure, and others run', async () => {
    const { agents, tree } = setUp()
    const report = { status: 'completed', result: 'kept' } as const
    const kept = new Map([
      ['c1 0', { report }],
      ['c1 1', {}],
    ])
    const ended: unknown[] = []
    const progress: Pick<CallProgress, 'earlierAgent' | 'endAgent' | 'ofAgent'> = {
      earlierAgent: (key) => kept.get(key),
      endAgent: (key, each) => ended.push([key, each]),
      ofAgent: () => progress as CallProgress,
    }
    const ofCall = keptSubAgents(agents, 'c1', progress as CallProgress)
    const reports = [await ofCall.run(TASK), await ofCall.run(TASK), await ofCall.run(TASK)]
    expect(reports.map(({ status, result }) => `${status} ${result}`)).to.deep.equal([
      ...['completed kept', 'failed ', 'completed answer'],
    ])
    expect([ended, tree.started]).to.deep.equal([[['c1 2', { status: 'completed', result: 'answer' }]], 1])
    expect(ofCall.refusal([{ ...TASK, tools: ['Raed'] }])).to.match(/no tool Raed/)
    expect(keptSubAgents(agents, 'c1', undefined)).to.equal(agents)
  })
})

describe('the tools of a sub-agent', () => {
  const all = boxOf('Read', 'Write', 'Agent', 'Skill', 'Dream', 'Team', 'ExitPlanMode')
  const namesOf = (box: ToolBox) => box.tools.map(({ name }) => name)

  it('D5.3: are those of its caller without Team and ExitPlanMode', () => {
    expect(namesOf(narrow(all, 1))).to.deep.equal(['Read', 'Write', 'Agent', 'Skill', 'Dream'])
  })

  it('D5.3: at the last depth hold none that starts sub-agents', () => {
    expect(namesOf(narrow(all, 2))).to.deep.equal(['Read', 'Write'])
  })

  it('D5.3: are only those that the task names', () => {
    expect(namesOf(narrow(all, 1, ['Read', 'Team']))).to.deep.equal(['Read'])
    expect(namesOf(narrow(all, 1, []))).to.deep.equal([])
  })

  it('D5.3: a tool that is not named is not found, one that is withheld is found, so that it can say why it refuses', () => {
    const found = (box: ToolBox) => namesOf(all).filter((name) => box.find(name))
    expect(found(narrow(all, 1, ['Read']))).to.deep.equal(['Read', 'Team'])
    expect(found(narrow(all, 2, ['Read']))).to.deep.equal(['Read', 'Agent', 'Skill', 'Dream', 'Team'])
    expect(found(narrow(all, 1))).to.deep.equal(['Read', 'Write', 'Agent', 'Skill', 'Dream', 'Team'])
  })
  it('have the policy and the checks of its caller', async () => {
    const own: ToolBox = { ...all, policyOf: () => 'deny', problemWith: async () => 'path is missing' }
    expect(narrow(own, 1).policyOf('Read', {})).to.equal('deny')
    expect(await narrow(own, 1).problemWith('Read', {})).to.equal('path is missing')
  })
})
