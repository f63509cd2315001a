import { expect } from 'chai'
import type { EventStream } from '../support/event-stream.ts'
import { inBothForms, useProduct } from '../support/product.ts'

const task = (description: string, ...lines: string[]) => ({ description, prompt: lines.join('\n') })
const tool = (name: string, input: unknown) => `/tool ${name} ${JSON.stringify(input)}`
const write = (path: string) => tool('Write', { path, content: 'x' })

inBothForms('sub-agents', (startProduct) => {
  const product = useProduct(() =>
    startProduct({ MODEL: '', MODEL_PROVIDER: 'demo', MODEL_BASE_URL: '', MODEL_PRICES: '' }),
  )

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
})
