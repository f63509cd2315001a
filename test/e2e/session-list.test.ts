import { expect } from 'chai'
import type { ApiType } from '../../shared/platform/api/api-type.ts'
import { inBothForms, type Product } from '../support/product.ts'
import { createSession, sendMessage } from '../support/sessions.ts'

type Session = ApiType<'SessionInfoResponse'>
type Message = ApiType<'SessionMessage'>
type Page<Name extends string, Item> = Record<Name, Item[]> & { next_cursor: string | null }

inBothForms('the list of sessions and their histories', (startProduct) => {
  let product: Product
  before(async () => {
    product = await startProduct()
  })
  after(() => product.close())

  const create = (body?: unknown) => createSession(product, body)
  const post = (session: string, prompt: string) => sendMessage(product, session, prompt)
  const infoOf = async (id: string) => (await product.call('GET', `/sessions/${id}`)).body as Session

  /** Reads all pages of a list. */
  async function readAll<Item>(path: string, name: string, limit: number): Promise<Item[]> {
    const items: Item[] = []
    let next: string | null = ''
    while (next !== null) {
      const { body } = await product.call('GET', `${path}?limit=${limit}${next && `&cursor=${next}`}`)
      const page = body as Page<string, Item>
      expect(page[name]?.length).to.be.at.most(limit)
      items.push(...(page[name] ?? []))
      next = page.next_cursor
    }
    return items
  }
  const sessions = (limit = 200) => readAll<Session>('/sessions', 'sessions', limit)
  const messagesOf = (id: string, limit = 200) => readAll<Message>(`/sessions/${id}/messages`, 'messages', limit)

  it('D23.1: lists the sessions that exist, those created last first, until they are deleted', async () => {
    const ids: string[] = []
    for (let i = 0; i < 5; i++) ids.push(await create())
    product.model.answer('fine')
    await (await post(ids[0] ?? '', 'the first one speaks')).all()
    const listed = await sessions(2)
    expect(listed.slice(0, 5).map(({ created_at }) => created_at)).to.deep.equal(
      listed
        .slice(0, 5)
        .map(({ created_at }) => created_at)
        .toSorted()
        .toReversed(),
    )
    expect(listed.slice(0, 5).map(({ session_id }) => session_id)).to.have.members(ids)
    expect(listed.find(({ session_id }) => session_id === ids[0])).to.deep.equal(await infoOf(ids[0] ?? ''))
    for (const id of ids) await product.call('DELETE', `/sessions/${id}`)
    expect((await sessions()).filter(({ session_id }) => ids.includes(session_id))).to.deep.equal([])
  })

  it('D23.2: tells the title, the run that goes on, the messages that wait, the model and what was used', async () => {
    const id = await create()
    expect(await infoOf(id)).to.deep.include({ title: null, last_message_at: null, model: null, remembered: [] })
    const gate = Promise.withResolvers<void>()
    product.model.answer([{ hold: gate.promise }, { text: 'first' }], 'second')
    const first = await post(id, `find\nthe ${'long '.repeat(30)}way`)
    await first.until('turn_start')
    const second = await post(id, 'and then')
    expect(await infoOf(id)).to.include({
      title: `find the${' long'.repeat(14)}…`,
      active_run_id: first.runId,
      queued: 1,
    })
    gate.resolve()
    const ends = [...(await first.all()), ...(await second.all())].filter(({ event }) => event === 'done')
    const info = await infoOf(id)
    expect(info).to.include({ active_run_id: null, queued: 0 })
    expect(info.model).to.be.a('string')
    expect(info.usage).to.include({ turns: 2 })
    const totals = ends.map(({ data }) => data as { total_input_tokens: number; total_output_tokens: number })
    expect(info.usage.input_tokens).to.equal(totals.reduce((sum, each) => sum + each.total_input_tokens, 0))
    expect(info.usage.output_tokens).to.equal(totals.reduce((sum, each) => sum + each.total_output_tokens, 0))
    expect(info.last_message_at).to.equal((await messagesOf(id)).at(-1)?.at)
  })

  it('D23.2: PATCH gives it another title, which later messages keep', async () => {
    const id = await create()
    const patched = await product.call('PATCH', `/sessions/${id}`, { title: 'Boats' })
    expect([patched.status, (patched.body as Session).title]).to.deep.equal([200, 'Boats'])
    product.model.answer('fine')
    await (await post(id, 'hello')).all()
    expect(await infoOf(id)).to.include({ title: 'Boats', message_count: 2 })
    for (const body of [{}, { title: ' ' }, { title: 'x'.repeat(201) }])
      expect((await product.call('PATCH', `/sessions/${id}`, body)).status).to.equal(400)
    expect((await product.call('PATCH', '/sessions/nobody', { title: 'x' })).status).to.equal(404)
    expect((await infoOf(id)).title).to.equal('Boats')
  })

  it('D23.3: lists what was said and done, with the run that added it, page by page', async () => {
    const id = await create()
    product.model.answer([{ text: 'I look' }, { tool: 'Glob', input: { pattern: '*' } }], 'nothing is here', 'bye')
    const one = await post(id, 'what is here?')
    await one.all()
    const two = await post(id, 'thanks')
    await two.all()
    const messages = await messagesOf(id, 2)
    const summary = messages.map(({ role, run_id, blocks }) => [role, run_id, blocks.map(({ type }) => type).join()])
    expect(summary).to.deep.equal([
      ['user', one.runId, 'text'],
      ['assistant', one.runId, 'text,tool_use'],
      ['tool', one.runId, 'tool_result'],
      ['assistant', one.runId, 'text'],
      ['user', two.runId, 'text'],
      ['assistant', two.runId, 'text'],
    ])
    expect(messages[0]?.blocks).to.deep.equal([{ type: 'text', text: 'what is here?' }])
    expect(messages[2]?.blocks[0]).to.deep.include({ type: 'tool_result', tool_name: 'Glob', is_error: false })
    expect((await product.call('GET', '/sessions/nobody/messages')).status).to.equal(404)
  })

  it('D23.4: a session goes on from the history it was created with, and one that was listed is taken whole', async () => {
    const messages = [
      { role: 'user', content: 'my boat is called Argo' },
      { role: 'assistant', blocks: [{ type: 'tool_use', id: 'call_1', tool_name: 'Look', input: { at: 'boat' } }] },
      { role: 'tool', blocks: [{ type: 'tool_result', id: 'call_1', output: 'a fine boat' }] },
      { role: 'assistant', content: 'a good name' },
    ]
    const id = await create({ messages })
    expect(await infoOf(id)).to.include({ title: 'my boat is called Argo', message_count: 3 })
    product.model.answer('Argo')
    await (await post(id, 'what is it called?')).all()
    const sent = product.model.requests.at(-1)?.body['messages'] as { role: string; content: unknown }[]
    expect(sent.map(({ role, content }) => [role, content])).to.deep.equal([
      ['user', 'my boat is called Argo'],
      ['assistant', null],
      ['tool', 'a fine boat'],
      ['assistant', 'a good name'],
      ['user', 'what is it called?'],
    ])
    const copy = await create({ messages: await messagesOf(id) })
    const bare = (all: Message[]) => all.map(({ role, blocks }) => ({ role, blocks }))
    expect(bare(await messagesOf(copy))).to.deep.equal(bare(await messagesOf(id)))
  })
})
