import { expect } from 'chai'
import {
  AgentTree,
  createSubAgents,
  type Lineage,
  narrow,
  type SubAgentOptions,
} from '../../shared/engine/sub-agents.ts'
import { type AgentEvent, errorEvent, type RunErrorCode } from '../../shared/events.ts'
import type { AgentTask, Tool, ToolBox } from '../../shared/tools/port.ts'
import { succeed } from '../../shared/tools/port.ts'
import { DONE } from '../worker/events.ts'

const tool = (name: string): Tool => ({
  name,
  description: name,
  inputSchema: {},
  defaultPolicy: 'allow',
  describe: () => name,
  run: async () => succeed(''),
})

const boxOf = (...names: string[]): ToolBox => {
  const tools = names.map(tool)
  return {
    tools,
    find: (name) => tools.find((candidate) => candidate.name === name),
    policyOf: () => 'allow',
    problemWith: () => undefined,
  }
}

const TASK: AgentTask = { description: 'task', prompt: 'do it' }
const ANSWER: AgentEvent[] = [{ type: 'text', text: 'answer' }, DONE]

/** Sub-agents that each yield `events` after `gate` has opened. `emitted` is what reaches the root's stream. */
function setUp({ events = ANSWER, gate = Promise.resolve(), ...rest }: Partial<Setup> = {}) {
  const emitted: AgentEvent[] = []
  const options: SubAgentOptions = {
    tree: new AgentTree(),
    caller: undefined,
    emit: async (event) => void emitted.push(event),
    toolBox: boxOf('Read'),
    model: 'm',
    async *launch() {
      await gate
      yield* events
    },
    ...rest,
  }
  return { agents: createSubAgents(options), tree: options.tree, emitted }
}

type Setup = SubAgentOptions & { events: AgentEvent[]; gate: Promise<void> }

const lineageOf = (tree: AgentTree, depth: number): Lineage => ({ tree, depth, id: 'sub_1', emit: async () => {} })

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
    expect(agents.refusal([{ ...TASK, tools: ['Read', 'Raed'] }])).to.equal(
      'There is no tool Raed. The tools are: Read, Glob.',
    )
    expect(agents.refusal([{ ...TASK, tools: ['Read'] }])).to.equal(undefined)
  })
})

describe('the events and the report of a sub-agent', () => {
  it('D4.13: start, wrapped events and end carry its id, and that of a calling sub-agent', async () => {
    const tree = new AgentTree()
    const { agents, emitted } = setUp({ tree, caller: lineageOf(tree, 1) })
    await agents.run(TASK)
    expect(emitted.map(({ type }) => type)).to.deep.equal([
      'subagent_start',
      'subagent_event',
      'subagent_event',
      'subagent_end',
    ])
    const ids = new Set(emitted.map((event) => 'subagent_id' in event && event.subagent_id))
    expect(ids.size).to.equal(1)
    for (const event of emitted) expect(event).to.include({ parent_subagent_id: 'sub_1' })
    expect(emitted[0]).to.include({ description: 'task', model: 'm' })
    expect(emitted[1]).to.include({ event_type: 'text', text: 'answer' })
    expect(emitted[3]).to.include({ status: 'completed', result: 'answer' }).and.not.have.property('error')
  })

  it('D4.13: a permission request follows its wrapped form at once, before the next event', async () => {
    const request: AgentEvent = {
      type: 'permission_request',
      id: 'perm_1',
      tool_name: 'Write',
      input: {},
      message: '?',
    }
    const { agents, emitted } = setUp({ events: [request, ...ANSWER] })
    await agents.run(TASK)
    expect(emitted[1]).to.include({ type: 'subagent_event', event_type: 'permission_request', id: 'perm_1' })
    expect(emitted[2]).to.equal(request)
  })

  it('the result is the text of the last turn', async () => {
    const turn = (turn_number: number): AgentEvent => ({ type: 'turn_start', turn_number, model: 'm' })
    const text = (value: string): AgentEvent => ({ type: 'text', text: value })
    const { agents } = setUp({ events: [turn(1), text('first'), turn(2), text('a'), text('b'), DONE] })
    expect(await agents.run(TASK)).to.deep.equal({ status: 'completed', result: 'a\nb' })
  })

  const ends: [RunErrorCode, string][] = [
    ['cancelled', 'cancelled'],
    ['session_deleted', 'cancelled'],
    ['worker_draining', 'cancelled'],
    ['worker_lost', 'cancelled'],
    ['timeout', 'failed'],
    ['max_turns_exceeded', 'failed'],
  ]
  for (const [code, status] of ends) {
    it(`a sub-agent that ends with ${code} is reported as ${status}, with the error`, async () => {
      const { agents, emitted } = setUp({ events: [errorEvent(code, 'why')] })
      expect(await agents.run(TASK)).to.deep.equal({ status, error: 'why', result: '' })
      expect(emitted.at(-1)).to.include({ type: 'subagent_end', status, error: 'why' })
    })
  }

  it('a sub-agent without a terminal event is reported as failed', async () => {
    expect(await setUp({ events: [] }).agents.run(TASK)).to.include({ status: 'failed' })
  })

  it('D5.7: the tokens and costs of its turns are added to the tree', async () => {
    const turnEnd: AgentEvent = {
      type: 'turn_end',
      turn_number: 1,
      input_tokens: 10,
      output_tokens: 2,
      cost_usd: 0.5,
      cache_read_tokens: 4,
      cache_write_tokens: 3,
    }
    const { agents, tree } = setUp({ events: [turnEnd, { ...turnEnd, cache_read_tokens: 0 }, DONE] })
    await agents.run(TASK)
    expect(tree.spent.usage).to.deep.equal({ input: 20, output: 4, cacheRead: 4, cacheWrite: 6 })
    expect(tree.spent).to.include({ costUsd: 1, turns: 0 })
  })

  const results: [what: string, result: string, told: string][] = [
    ['2,048 bytes is whole', 'x'.repeat(2_048), 'x'.repeat(2_048)],
    ['2,049 bytes is cut', 'x'.repeat(2_049), `${'x'.repeat(2_048)}...`],
    ['characters of two bytes is cut between two of them', `x${'é'.repeat(1_100)}`, `x${'é'.repeat(1_023)}...`],
  ]
  for (const [what, result, told] of results) {
    it(`api.md Limits: a result of ${what} in the event, and whole in the report`, async () => {
      const { agents, emitted } = setUp({ events: [{ type: 'text', text: result }, DONE] })
      expect(await agents.run(TASK)).to.include({ result })
      expect(emitted.at(-1)).to.include({ result: told })
    })
  }
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
})
