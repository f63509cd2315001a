import { expect } from 'chai'
import type { ApiType } from '../../shared/platform/api/api-type.ts'
import { inBothForms, useProduct } from '../support/product.ts'
import { createSession, sendMessage } from '../support/sessions.ts'

type Session = ApiType<'SessionInfoResponse'>
type Message = ApiType<'SessionMessage'>

inBothForms('the list of sessions and their histories', (startProduct) => {
  const product = useProduct(startProduct)

  const create = (body?: unknown) => createSession(product, body)
  const post = (session: string, prompt: string) => sendMessage(product, session, prompt)
  const infoOf = async (id: string) => (await product.call('GET', `/sessions/${id}`)).body as Session

  const messagesOf = async (id: string) =>
    ((await product.call('GET', `/sessions/${id}/messages?limit=200`)).body as { messages: Message[] }).messages

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
