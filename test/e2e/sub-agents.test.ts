import { expect } from 'chai'
import type { EventStream } from '../support/event-stream.ts'
import { inBothForms, type Product } from '../support/product.ts'

const task = (description: string, ...lines: string[]) => ({ description, prompt: lines.join('\n') })
const tool = (name: string, input: unknown) => `/tool ${name} ${JSON.stringify(input)}`
const write = (path: string) => tool('Write', { path, content: 'x' })

inBothForms('sub-agents', (startProduct) => {
  let product: Product
  before(async () => {
    product = await startProduct({ MODEL: '', MODEL_PROVIDER: 'demo', MODEL_BASE_URL: '', MODEL_PRICES: '' })
  })
  after(() => product.close())

  const start = (...lines: string[]): Promise<EventStream> => product.run({ prompt: lines.join('\n') })
  const framesOf = async (...lines: string[]) => (await start(...lines)).all()
  const dataOf = (frames: Awaited<ReturnType<typeof framesOf>>, event: string) =>
    frames.filter((frame) => frame.event === event).map(({ data }) => data)

  it('api.md Events 5: Agent runs a sub-agent, whose start, events and end are on the stream, and returns its last text', async () => {
    const frames = await framesOf(tool('Agent', task('greet', '/think hm', '/say hello')), '/say bye')
    const [begun] = dataOf(frames, 'subagent_start')
    expect(begun).to.include({ description: 'greet', model: 'demo' }).and.not.have.any.keys('cwd', 'parent_subagent_id')
    expect(begun?.['subagent_id']).to.match(/^sub_[0-9a-f]{32}$/)
    expect(begun?.['start_time_ms']).to.be.closeTo(Date.now(), 20_000)
    const inner = dataOf(frames, 'subagent_event')
    expect(inner.every((data) => data['subagent_id'] === begun?.['subagent_id'])).to.equal(true)
    expect(inner.find((data) => data['event_type'] === 'thinking')).to.include({ text: 'hm' })
    const [ended] = dataOf(frames, 'subagent_end')
    expect(ended).to.include({ status: 'completed' }).and.not.have.property('error')
    expect(ended?.['result']).to.match(/demo model.*\nhello$/)
    expect(ended?.['duration_ms']).to.be.a('number')
    expect(dataOf(frames, 'tool_result')[0]).to.include({ output: ended?.['result'], is_error: false })
    expect(frames.at(-1)?.event).to.equal('done')
  })

  it('D5.7: the totals of done include the sub-agents, turn_count only the run’s own turns', async () => {
    const frames = await framesOf(tool('Agent', task('count', '/say one two three')), '/say bye')
    const turns = [
      ...dataOf(frames, 'turn_end'),
      ...dataOf(frames, 'subagent_event').filter((data) => data['event_type'] === 'turn_end'),
    ]
    const sum = (name: string) => turns.reduce((total, data) => total + Number(data[name]), 0)
    expect(turns).to.have.length(3)
    expect(frames.at(-1)?.data).to.include({
      total_input_tokens: sum('input_tokens'),
      total_output_tokens: sum('output_tokens'),
      turn_count: 2,
    })
  })

  it('api.md Limits: a result over 2 KB is cut in the event, and the caller reads all of it', async () => {
    const long = 'é'.repeat(3_000)
    const frames = await framesOf(tool('Agent', task('long', `/say ${long}`)), '/say bye')
    const result = String(dataOf(frames, 'subagent_end')[0]?.['result'])
    expect(result.endsWith('é...')).to.equal(true)
    expect(Buffer.byteLength(result)).to.be.within(2_047 + 3, 2_048 + 3)
    expect(dataOf(frames, 'tool_result')[0]?.['output']).to.satisfy((output: string) => output.endsWith(long))
  })

  it('D4.13: a Team in which one agent fails and one is denied returns every result; permission requests reach the stream twice and are answered like any other', async () => {
    const agents = [
      task('writer', write('a.txt'), '/say wrote'),
      task('denied', write('b.txt'), '/say could not'),
      task('broken', '/fail provider_rejected'),
    ]
    const stream = await start(tool('Team', { agents }), '/say bye')
    for (let asked = 0; asked < 2; asked++) {
      const { data } = await stream.until('permission_request')
      const allow = (data['input'] as { path: string }).path === 'a.txt'
      const { status } = await product.call('POST', `/sessions/${stream.runId}/permissions/${data['id']}`, { allow })
      expect(status).to.equal(200)
    }
    const frames = await stream.all()
    for (const type of ['permission_request', 'permission_resolved']) {
      const wrapped = dataOf(frames, 'subagent_event').filter((data) => data['event_type'] === type)
      const plain = dataOf(frames, type)
      expect(wrapped).to.have.length(2)
      expect(wrapped.map((data) => data['id'])).to.have.members(plain.map((data) => data['id']))
    }
    expect(dataOf(frames, 'subagent_end').map((data) => data['status'])).to.have.members([
      'completed',
      'completed',
      'failed',
    ])
    const [result] = dataOf(frames, 'tool_result').filter((data) => data['tool_name'] === 'Team')
    expect(result?.['is_error']).to.equal(false)
    expect(result?.['output'])
      .to.include('1 of 3 did not succeed: broken')
      .and.include('wrote')
      .and.include('could not')
    const inner = dataOf(frames, 'subagent_event').filter((data) => data['event_type'] === 'tool_result')
    expect(inner.map((data) => data['is_error'])).to.have.members([true, false])
    expect(frames.at(-1)?.event).to.equal('done')
  })

  it('D4.13: the events of a sub-agent’s sub-agent are on the root stream under its own id, with its parent’s id', async () => {
    const grandchild = tool('Agent', task('grandchild', '/say deep'))
    const frames = await framesOf(tool('Agent', task('child', grandchild, '/say middle')), '/say top')
    const [child, deep] = dataOf(frames, 'subagent_start')
    expect(deep).to.include({ description: 'grandchild', parent_subagent_id: child?.['subagent_id'] })
    const types = dataOf(frames, 'subagent_event').map((data) => String(data['event_type']))
    expect(types.filter((type) => type.startsWith('subagent'))).to.deep.equal([])
    const ends = dataOf(frames, 'subagent_end')
    const results = ends.map((data) => String(data['result']).split('\n').at(-1))
    expect(results).to.deep.equal(['deep', 'deep']) // The demo model repeats the output of its tools.
  })

  it('D5.3: depth, a Team of nine, a Team from a sub-agent and unknown tools are errors that the model reads, and the run continues', async () => {
    const third = tool('Agent', task('third', '/say never'))
    const second = tool('Agent', task('second', third, '/say second'))
    const cases: [string, RegExp][] = [
      [tool('Team', { agents: Array.from({ length: 9 }, () => task('t', '/say t')) }), /at most 8 agents, not 9/],
      [tool('Agent', { ...task('t', '/say t'), tools: ['Raed'] }), /no tool Raed/],
      [tool('Agent', { description: 'no prompt' }), /prompt is missing/],
      [tool('Skill', { name: 'nowhere' }), /No skills are installed/],
      [tool('Dream', {}), /no history to dream of/],
      [tool('Agent', task('first', second, '/say first')), /Agent answered: second/],
      [
        tool('Agent', task('starter', tool('Team', { agents: [task('t', '/say t')] }), '/say ended')),
        /ended\nTeam failed: A sub-agent cannot/,
      ],
    ]
    const frames = await framesOf(...cases.map(([call]) => call), '/say bye')
    const results = dataOf(frames, 'tool_result')
    expect(results).to.have.length(cases.length)
    for (const [i, [, expected]] of cases.entries()) expect(results[i]?.['output']).to.match(expected)
    const inner = dataOf(frames, 'subagent_event').filter(
      (data) => data['event_type'] === 'tool_result' && data['is_error'] === true,
    )
    expect(inner.map((data) => data['output'])).to.deep.equal([
      'Sub-agents go 2 deep and no deeper: do this task yourself.',
      'A sub-agent cannot start a Team: use Agent, or do the tasks one after another.',
    ])
    expect(dataOf(frames, 'subagent_start').map((data) => data['description'])).not.to.include('third')
    expect(frames.at(-1)?.event).to.equal('done')
  })

  it('D5.3: a run can start 64 sub-agents, and the 65th is an error that the model reads', async () => {
    const team = tool('Team', { agents: Array.from({ length: 8 }, () => task('t', '/say t')) })
    const frames = await framesOf(
      ...Array.from({ length: 8 }, () => team),
      tool('Agent', task('one more', '/say t')),
      '/say bye',
    )
    expect(dataOf(frames, 'subagent_end').filter((data) => data['status'] === 'completed')).to.have.length(64)
    expect(dataOf(frames, 'tool_result').at(-1)).to.include({ is_error: true })
    expect(dataOf(frames, 'tool_result').at(-1)?.['output']).to.match(/64 sub-agents/)
  })

  it('D5.4: an approved plan is carried out inline, and a plan with a circle is refused without a permission request', async () => {
    const steps = [
      { id: 'a', prompt: 'do a' },
      { id: 'b', prompt: 'do b', depends_on: ['a'] },
    ]
    const circle = [
      { id: 'a', prompt: 'do a', depends_on: ['b'] },
      { id: 'b', prompt: 'do b', depends_on: ['a'] },
    ]
    const stream = await start(
      tool('ExitPlanMode', { steps: circle }),
      tool('ExitPlanMode', { steps }),
      '/say carried out',
    )
    const { data } = await stream.until('permission_request')
    await product.call('POST', `/sessions/${stream.runId}/permissions/${data['id']}`, { allow: true })
    const frames = await stream.all()
    const [refused, approved] = dataOf(frames, 'tool_result')
    expect(refused?.['output']).to.match(/in a circle: .*a.* -> .*b/)
    expect(approved?.['output']).to.match(/The plan is approved/)
    expect(dataOf(frames, 'permission_request')).to.have.length(1)
    expect(frames.at(-1)?.event).to.equal('done')
  })

  it('api.md Events 6: with auto_queue_plan an approved plan ends the run with plan_queued, and none of its steps is carried out', async () => {
    const prompt = [tool('ExitPlanMode', { steps: [{ id: 'a', prompt: 'do a' }] }), '/say carried out'].join('\n')
    const stream = await product.run({ prompt, auto_queue_plan: true })
    const { data } = await stream.until('permission_request')
    await product.call('POST', `/sessions/${stream.runId}/permissions/${data['id']}`, { allow: true })
    const frames = await stream.all()
    expect(frames.at(-1)?.event).to.equal('plan_queued')
    expect(frames.at(-1)?.data).to.have.any.keys('plan_id', 'note')
    expect(dataOf(frames, 'text').map(({ text }) => text)).not.to.include('carried out')
    expect((await product.call('GET', `/runs/${stream.runId}`)).body).to.include({ status: 'done' })
  })
})
