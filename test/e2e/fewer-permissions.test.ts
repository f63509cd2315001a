import { expect } from 'chai'
import { inBothForms, useProduct } from '../support/product.ts'

const tool = (name: string, input: unknown) => `/tool ${name} ${JSON.stringify(input)}`
const write = (path: string) => tool('Write', { path, content: 'x' })
const bash = (command: string) => tool('Bash', { command })
const PLAN = tool('ExitPlanMode', { steps: [{ id: 'a', prompt: 'write it' }] })

inBothForms('fewer permission requests', (startProduct, form) => {
  const product = useProduct(() =>
    startProduct({
      MODEL: '',
      MODEL_PROVIDER: 'demo',
      MODEL_BASE_URL: '',
      MODEL_PRICES: '',
      ENABLE_BASH: 'true',
      TOOL_PERMISSIONS: '{"Bash(echo *)":"allow","Bash(rm *)":"deny"}',
    }),
  )

  const message = (session: string, ...lines: string[]) =>
    product.stream(`/sessions/${session}/messages`, { prompt: lines.join('\n') })
  const reply = (scope: string, id: unknown, body: unknown) =>
    product.call('POST', `/sessions/${scope}/permissions/${id}`, body)
  const remembered = async (query = '') => {
    const { body } = await product.call('GET', `/permissions?state=remembered${query}`)
    return body as { permissions: Record<string, string>[]; next_cursor: string | null }
  }
  const countOf = (frames: readonly { event: string }[], event: string) =>
    frames.filter((frame) => frame.event === event).length

  if (form === 'cluster')
    it('D21: without a store no usage is counted: 503', async () => {
      expect((await product.call('GET', '/usage')).status).to.equal(503)
    })

  if (form === 'cluster')
    it('D24.3: without a store no decisions are kept: 503', async () => {
      expect((await product.call('GET', '/permissions?state=decided')).status).to.equal(503)
    })

  it('D24.1: an input that the policy forbids is 400, also in a reply that changes it', async () => {
    await product.call('POST', '/sessions', { session_id: 'edited' })
    const stream = await message('edited', bash('true'))
    const { data } = await stream.until('permission_request')
    const refused = await reply('edited', data['id'], { allow: true, input: { command: 'rm x' } })
    expect(refused.status, refused.text).to.equal(400)
    expect(refused.body).to.nested.include({ 'error.param': '/input' })
    expect((await reply('edited', data['id'], { allow: true, input: { command: 'echo fine' } })).status).to.equal(200)
    const frames = await stream.all()
    expect(frames.find(({ event }) => event === 'tool_result')?.data['output']).to.include('echo fine')
  })

  it('D14.1: a reply may allow a tool for the rest of the session, which is listed, can be revoked, and ends with the session', async () => {
    await product.call('POST', '/sessions', { session_id: 'calm' })
    const first = await message('calm', write('a.txt'), write('b.txt'))
    const { data } = await first.until('permission_request')
    expect((await reply('calm', data['id'], { allow: true, remember: 'session' })).status).to.equal(200)
    expect(countOf(await first.all(), 'permission_request')).to.equal(1)
    const second = await (await message('calm', write('c.txt'), '/say done')).all()
    expect(countOf(second, 'permission_request')).to.equal(0)
    expect(second.find(({ event }) => event === 'tool_result')?.data).to.include({ is_error: false })
    const [entry, ...others] = (await remembered()).permissions
    expect(entry).to.include({ session_id: 'calm', tool_name: 'Write' }).and.have.property('remembered_at')
    expect(others).to.deep.equal([])

    const revoke = (query: string) => product.call('DELETE', `/permissions/remembered?${query}`)
    for (const [query, status] of [
      ['tool_name=Write', 400],
      ['session_id=calm&tool_name=Bash', 404],
      ['session_id=nobody&tool_name=Write', 404],
      ['session_id=calm&tool_name=Write', 200],
      ['session_id=calm&tool_name=Write', 404],
      ['session_id=calm', 200],
    ] as const)
      expect((await revoke(query)).status, query).to.equal(status)
    expect((await remembered()).permissions).to.deep.equal([])
    const revoked = await message('calm', write('d.txt'))
    await reply('calm', (await revoked.until('permission_request')).data['id'], { allow: true, remember: 'session' })
    await revoked.all()
    expect((await remembered()).permissions).to.have.length(1)

    await product.call('POST', '/sessions', { session_id: 'other' })
    const elsewhere = await message('other', write('a.txt'))
    const asked = await elsewhere.until('permission_request')
    await reply('other', asked.data['id'], { allow: false })
    await elsewhere.all()

    await product.call('DELETE', '/sessions/calm')
    expect(await remembered()).to.deep.equal({ permissions: [], next_cursor: null })
    await product.call('POST', '/sessions', { session_id: 'calm' })
    const anew = await message('calm', write('a.txt'))
    await reply('calm', (await anew.until('permission_request')).data['id'], { allow: false })
    await anew.all()
  })

  it('D2.7: the list of remembered tools has pages, and refuses a wrong state and a foreign cursor', async () => {
    for (const session of ['p1', 'p2', 'p3']) {
      await product.call('POST', '/sessions', { session_id: session })
      const stream = await message(session, write('a.txt'))
      await reply(session, (await stream.until('permission_request')).data['id'], { allow: true, remember: 'session' })
      await stream.all()
    }
    const first = await remembered('&limit=2')
    const rest = await remembered(`&limit=2&cursor=${first.next_cursor}`)
    const sessions = [...first.permissions, ...rest.permissions].map(({ session_id }) => session_id)
    expect([sessions, rest.next_cursor]).to.deep.equal([['p3', 'p2', 'p1'], null])
    const pending = await product.call('GET', '/permissions?state=pending')
    expect(pending.body).to.deep.equal({ permissions: [], next_cursor: null })
    expect((await product.call('GET', '/permissions?state=all')).body).to.nested.include({ 'error.param': '/state' })
    expect((await product.call('GET', '/permissions?state=remembered&cursor=WzFd')).status).to.equal(400)
  })

  it('D14.2: with plan_mode nothing is changed before the plan is allowed, also not by a sub-agent', async () => {
    const prompt = [
      tool('Agent', { description: 'x', prompt: bash('echo hello') }),
      write('a.txt'),
      PLAN,
      write('a.txt'),
    ]
    const stream = await product.run({ prompt: prompt.join('\n'), plan_mode: true })
    const asked: string[] = []
    for (let i = 0; i < 2; i++) {
      const { data } = await stream.until('permission_request')
      asked.push(String(data['tool_name']))
      await reply(stream.runId, data['id'], { allow: true })
    }
    const frames = await stream.all()
    expect(asked).to.deep.equal(['ExitPlanMode', 'Write'])
    const inner = frames.find(({ event, data }) => event === 'subagent_event' && data['event_type'] === 'tool_result')
    expect(inner?.data).to.include({ tool_name: 'Bash', is_error: true })
    const results = frames.filter(({ event, data }) => event === 'tool_result' && data['tool_name'] === 'Write')
    expect(results.map(({ data }) => data['is_error'])).to.deep.equal([true, false])
  })
})
