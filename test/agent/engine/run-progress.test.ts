// Tests run-progress.ts and call-progress.ts.
import { expect } from 'chai'
import type { StepState } from '../../../shared/agent/engine/call-progress.ts'
import type { AskRequest } from '../../../shared/agent/engine/permissions.ts'
import { RunProgress } from '../../../shared/agent/engine/run-progress.ts'
import { succeed } from '../../../shared/agent/tools/port.ts'
import { call, collect, resourcesOf, SOON, tool } from './tool-step-setup.ts'

const ANSWER = { blocks: [], toolCalls: [], outputChars: 0, outcome: 'complete' } as const

const DONE_BEFORE = { toolName: 'Write', output: 'done before', isError: false }

/** The progress of a run in its first turn. `stored` counts the stores that were waited for. */
function setUp({ isOwn = true, step }: { isOwn?: boolean; step?: StepState } = {}) {
  const stored = { count: 0, noted: 0 }
  const keeper = { note: () => void stored.noted++, stored: async () => (++stored.count, isOwn) }
  const earlier = step && { state: new RunProgress(keeper).state, step }
  const progress = new RunProgress(keeper, earlier)
  progress.start(new AbortController().signal, undefined)
  if (!step) progress.beginStep(1, 'm', { ...ANSWER, blocks: [], toolCalls: [] })
  return { progress, stored }
}

const stepOf = (calls: StepState['calls'], agents: StepState['agents'] = {}): StepState => ({
  ...{ turn: 1, model: 'm', answer: { ...ANSWER, blocks: [], toolCalls: [] }, calls, agents, agentAsks: [] },
})

const askOf = (id: string) => ({ id, created_at: SOON, expires_at: SOON })
const asking = (id: string, file = 'a') => ({ id, toolName: 'Write', input: { path: file } })

describe('the progress of a run', () => {
  it('D35.2c: a call that may have changed files counts when they are stored, and the model reads which are not', async () => {
    const { progress } = setUp()
    let unstored = [{ path: 'a.txt', mtimeMs: 5 }]
    const asked: string[] = []
    const storeFiles = async () => (asked.push(String(progress.earlier('w')?.result)), unstored)
    const tools = [
      { ...tool('Write'), usesFiles: true },
      { ...tool('Read'), usesFiles: true, isReadOnly: true },
      tool('Fetch'),
    ]
    const resources = { ...resourcesOf({ tools, storeFiles }), progress }
    const read = await collect([call('r', 'Read'), call('f', 'Fetch')], resources)
    expect([asked, read.results.map(({ output }) => output)]).to.deep.equal([[], ['Read ran', 'Fetch ran']])
    const { results } = await collect([call('w', 'Write')], resources)
    expect(asked, 'before it counts').to.deep.equal(['undefined'])
    expect(results[0]?.output).to.include('Write ran').and.include('could not be stored').and.include('"a.txt"')
    expect(progress.state.unstored).to.deep.equal(unstored)
    expect(progress.takeStep(false)?.calls['w']?.result?.output).to.include('could not be stored')
    unstored = []
    await collect([call('w2', 'Write')], resources)
    expect(progress.state).not.to.have.property('unstored')
  })

  it('D35.2c: the first result in another process names the changes that are missing there, once', async () => {
    const { progress } = setUp({ step: stepOf({ c1: { hasBegun: true, result: { ...DONE_BEFORE, id: 'c1' } } }) })
    progress.loseFiles(['a.txt', 'b\udc80'])
    const resources = { ...resourcesOf({ tools: [tool('Write')] }), progress }
    const { results } = await collect([call('c1', 'Write'), call('c2', 'Write')], resources)
    expect(results[0]?.output).to.include('done before').and.include('missing here: "a.txt", "b\\udc80"')
    expect(results[1]?.output).to.equal('Write ran')
  })

  it('D32.9a: that a tool which may change something begins is stored before; of one that reads, nothing is', async () => {
    const { progress, stored } = setUp()
    const seen: number[] = []
    const note = (name: string, more = {}) => ({
      ...tool(name, async () => (seen.push(stored.count), succeed('x'))),
      ...more,
    })
    const tools = [note('Write'), note('Read', { isReadOnly: true }), note('Put', { isIdempotent: true })]
    const resources = { ...resourcesOf({ tools }), progress }
    await collect([call('c1', 'Read'), call('c2', 'Put')], resources)
    expect([seen, progress.takeStep(false)]).to.deep.equal([[0, 0], undefined])
    await collect([call('c3', 'Write')], resources)
    expect(seen).to.deep.equal([0, 0, 1])
    const result = { id: 'c3', toolName: 'Write', output: 'x', isError: false }
    expect(progress.takeStep(false)).to.deep.include({ turn: 1, model: 'm', calls: { c3: { hasBegun: true, result } } })
    expect(progress.takeStep(false)).to.equal(undefined)
  })

  it('D32.5: a tool is not run when the store says that another process has the run', async () => {
    const { progress } = setUp({ isOwn: false })
    const { results } = await collect([call('c1', 'Write')], { ...resourcesOf({ tools: [tool('Write')] }), progress })
    expect(results[0]).to.include({ isError: true, output: 'The run has ended.' })
  })

  it('D32.9a: a call that another process had begun is not made again: its result counts, or that it may have run', async () => {
    const result = { id: 'c2', toolName: 'Write', output: 'kept', isError: false }
    const { progress } = setUp({ step: stepOf({ c1: { hasBegun: true }, c2: { hasBegun: true, result } }) })
    let ran = 0
    const write = tool('Write', async () => (ran++, succeed('again')))
    const calls = ['c1', 'c2', 'c3'].map((id) => call(id, 'Write'))
    const { results } = await collect(calls, { ...resourcesOf({ tools: [write] }), progress })
    expect(results.map(({ isError }) => isError)).to.deep.equal([true, false, false])
    expect(results.map(({ output }) => output)).to.deep.equal([
      'Write was interrupted by a failure of this server. It may have run, completely or in part. Find out what it has done before you call it again.',
      ...['kept', 'again'],
    ])
    expect(ran).to.equal(1)
  })

  it('D32.9b: a permission request is stored before it is opened, and another process waits for the same one', async () => {
    const asked: AskRequest[] = []
    const ask = { id: 'perm_1', created_at: SOON, expires_at: SOON }
    const openAsk = async (request: AskRequest) => {
      asked.push(request)
      if (!request.earlier) await request.keep?.(ask)
      return {
        id: 'perm_1',
        expiresAt: SOON,
        decision: Promise.resolve({ allow: true, how: 'reply', reason: '' } as const),
      }
    }
    const resources = resourcesOf({ tools: [tool('Write')], policy: 'ask', openAsk })
    const first = setUp()
    await collect([call('c1', 'Write')], { ...resources, progress: first.progress })
    expect([asked[0]?.earlier, first.stored.count]).to.deep.equal([undefined, 2])
    expect(first.progress.takeStep(false)?.calls['c1']).to.deep.include({ ask, hasBegun: true })
    const { progress } = setUp({ step: stepOf({ c1: { ask } }) })
    await collect([call('c1', 'Write')], { ...resources, progress })
    expect(asked[1]?.earlier).to.deep.equal(ask)
  })

  it('the answer that another process got counts for its own turn only', () => {
    const { progress } = setUp({ step: stepOf({}) })
    expect([1, 2].map((turn) => progress.earlierStep(turn)?.model)).to.deep.equal(['m', undefined])
  })

  it('D32.9c: a sub-agent that had ended is not run again, nor one that may have changed something; another is', async () => {
    const report = { status: 'completed', result: 'kept' } as const
    const { progress } = setUp({ step: stepOf({}, { 'c1 0': { report }, 'c1 1': {} }) })
    const child = progress.ofAgent('c1 2')
    await child.begin('c9')
    progress.endAgent('c1 3', report)
    expect(progress.takeStep(false)?.agents).to.deep.equal({ 'c1 2': {}, 'c1 3': { report } })
    expect([progress.earlierAgent('c1 0'), progress.earlierAgent('c1 1')]).to.deep.equal([{ report }, {}])
    expect(child.earlier('c9')).to.equal(undefined)
  })

  it('goes on with what another process knew: the prompt, the turns, the sub-agents and the end', () => {
    const { progress } = setUp()
    progress.tree.started = 3
    progress.endTurn(
      { usage: { input: 5, cacheRead: 1, cacheWrite: 0, output: 2 }, costUsd: 1, turns: 2, unpriced: new Set(['m']) },
      'end_turn',
    )
    const state = JSON.parse(JSON.stringify(progress.state)) as typeof progress.state
    const next = new RunProgress({ note() {}, stored: async () => true }, { state })
    expect(next.start(new AbortController().signal, undefined)).to.equal(true)
    expect([next.totals.turns, next.totals.unpriced.has('m'), next.tree.started, next.stopReason]).to.deep.equal([
      ...[2, true, 3, 'end_turn'],
    ])
    const plan = { isOn: true }
    new RunProgress({ note() {}, stored: async () => true }, { state }).start(new AbortController().signal, plan)
    expect(plan.isOn).to.equal(false)
  })

  it('D32.7a: only what has changed of a step is stored again, and all of it where the whole is asked for', async () => {
    const usage = { input: 1, cacheRead: 0, cacheWrite: 0, output: 1 }
    const { progress, stored } = setUp()
    const answer = { ...ANSWER, blocks: [], toolCalls: [], usage }
    progress.beginStep(1, 'm', answer)
    expect([progress.takeStep(false), progress.takeStep(true)]).to.deep.equal([undefined, undefined])
    await progress.begin('c1')
    const calls = { c1: { hasBegun: true } } as const
    const whole = { turn: 1, model: 'm', answer, calls, agents: {}, agentAsks: [] }
    expect(progress.takeStep(false)).to.deep.equal(whole)
    await progress.begin('c2')
    expect(progress.takeStep(false)).to.deep.equal({
      ...{ turn: 1, calls: { c2: { hasBegun: true } }, agents: {}, agentAsks: [] },
    })
    expect(progress.takeStep(true)).to.deep.equal({ ...whole, calls: { ...calls, c2: { hasBegun: true } } })
    const before = stored.noted
    progress.end('c1', { id: 'c1', toolName: 'Write', output: '', isError: false })
    progress.endAgent('c2 0', { status: 'completed', result: '' })
    expect(stored.noted - before).to.equal(2)
  })

  it('D32.9b: the permission requests of a sub-agent, and of those that it starts, are stored with the step', async () => {
    const earlier = { ...askOf('perm_0'), call: 'of another process' }
    const { progress, stored } = setUp({ step: { ...stepOf({}), agentAsks: [earlier] } })
    const child = progress.ofAgent('c1 0')
    expect(progress.takeStep(false)).to.equal(undefined)
    await child.ask(asking('c9'), askOf('perm_1'))
    const step = progress.takeStep(false)
    expect(step).to.deep.include({ agents: {} })
    expect(step?.agentAsks.map(({ id }) => id)).to.deep.equal(['perm_0', 'perm_1'])
    await child.ofAgent('c9 0').begin('c10')
    expect(progress.takeStep(false)).to.deep.include({ agents: { 'c1 0': {} } })
    expect(stored.count).to.equal(2)
  })

  it('D32.9c: a sub-agent that begins anew and makes an equal call has the request of that call, once; the others are dropped', async () => {
    const first = setUp().progress
    for (const [i, file] of ['a', 'a', 'b'].entries())
      await first.ofAgent('c1 0').ask(asking(`c${i}`, file), askOf(`perm_${i}`))
    const { agentAsks = [] } = first.takeStep(true) ?? {}
    const { progress, stored } = setUp({ step: { ...stepOf({}), agentAsks } })
    const child = progress.ofAgent('c1 0')
    const idOf = (file: string) => child.earlierAsk(asking('new', file))?.id
    expect([idOf('x'), idOf('a'), idOf('a'), idOf('a')]).to.deep.equal([undefined, 'perm_0', 'perm_1', undefined])
    expect(progress.dropAgentAsks()).to.deep.equal(['perm_2'])
    expect([idOf('b'), progress.dropAgentAsks()]).to.deep.equal([undefined, []])
    expect(progress.takeStep(false)?.agentAsks.map(({ id }) => id)).to.deep.equal(['perm_0', 'perm_1'])
    expect(stored.noted).to.equal(1)
  })

  it('D32.9b: a permission is not asked for when another process has the run', async () => {
    const { progress } = setUp({ isOwn: false })
    const opened: string[] = []
    const openAsk = async ({ keep, toolName }: AskRequest) => {
      await keep?.({ id: 'perm_1', created_at: SOON, expires_at: SOON })
      opened.push(toolName)
      return { id: 'perm_1', expiresAt: SOON, decision: new Promise<never>(() => {}) }
    }
    const resources = { ...resourcesOf({ tools: [tool('Write')], policy: 'ask', openAsk }), progress }
    const { results } = await collect([call('c1', 'Write')], resources)
    expect([opened, results[0]?.isError]).to.deep.equal([[], true])
  })

  it('D5.4: plan mode begins as the request says, and is stored as it is', () => {
    const progress = new RunProgress({ note() {}, stored: async () => true })
    expect(progress.state).to.deep.include({ hasBegun: false, isPlanning: false })
    const plan = { isOn: true }
    expect(progress.start(new AbortController().signal, plan)).to.equal(false)
    expect([plan.isOn, progress.state.isPlanning]).to.deep.equal([true, true])
    const next = new RunProgress({ note() {}, stored: async () => true }, { state: progress.state })
    expect(next.state).to.deep.equal(progress.state)
  })
})
