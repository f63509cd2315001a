import { expect } from 'chai'
import { NAMESPACE, toConversation } from '../../../../shared/agent/providers/chat/conversation.ts'
import type { AssistantBlock, Message } from '../../../../shared/agent/providers/port.ts'
import { request } from '../ai-sdk/setup.ts'

const ORIGIN = 'models.test'
const user = (text: string): Message => ({ role: 'user', text })
const assistant = (...blocks: AssistantBlock[]): Message => ({ role: 'assistant', blocks })
const call = (id: string, meta: object = {}): AssistantBlock => ({
  ...{ type: 'tool_use', id, toolName: 'Read', input: { path: id } },
  ...(Object.keys(meta).length > 0 && { meta: { [NAMESPACE]: { origin: ORIGIN, ...meta } } }),
})
const result = (id: string): Message => ({
  role: 'tool',
  results: [{ id, toolName: 'Read', output: `of ${id}`, isError: false }],
})
const thinking = (text: string, meta: object, origin = ORIGIN): AssistantBlock => ({
  ...{ type: 'thinking', text, meta: { [NAMESPACE]: { origin, ...meta } } },
})
const convert = (messages: Message[], model = 'any') => toConversation(request({ model, messages }), ORIGIN)

describe("a history in OpenAI's chat format", () => {
  it('has a call with its arguments as JSON, no text beside it, and its result behind it', () => {
    expect(convert([user('hi'), assistant(call('a')), result('a')])).to.deep.equal([
      { role: 'user', content: 'hi' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'a', type: 'function', function: { name: 'Read', arguments: '{"path":"a"}' } }],
      },
      { role: 'tool', tool_call_id: 'a', content: 'of a' },
    ])
  })

  it('joins neighbours of one role, but no results of tools', () => {
    const image = { name: 'a.png', mediaType: 'image/png', base64: 'AA==' }
    const url = { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } }
    expect(convert([user('one'), user(''), user('two')])).to.deep.equal([{ role: 'user', content: 'one\n\ntwo' }])
    expect(convert([user('one'), { role: 'user', text: 'two', attachments: [image] }])).to.deep.equal([
      { role: 'user', content: [{ type: 'text', text: 'one' }, { type: 'text', text: 'two' }, url] },
    ])
    expect(convert([assistant(call('a'), call('b')), result('a'), result('b')])).to.have.length(3)
  })

  it('leaves out an answer of nothing, and thinking that the server has not asked back', () => {
    expect(convert([user('one'), assistant({ type: 'thinking', text: 'hm' }), user('two')])).to.deep.equal([
      { role: 'user', content: 'one\n\ntwo' },
    ])
  })

  it('sends thinking back in its field until the next message of the user, and only to its own server', () => {
    const turn = [assistant(thinking('hm', { field: 'reasoning_content' }), call('a')), result('a')]
    const foreign = assistant(thinking('hm', { field: 'reasoning_content' }, 'other.test'), call('a'))
    expect(convert([user('hi'), ...turn])[1]).to.include({ reasoning_content: 'hm' })
    expect(convert([user('hi'), ...turn, user('and?')])[1]).to.not.have.property('reasoning_content')
    expect(convert([user('hi'), foreign, result('a')])[1]).to.not.have.property('reasoning_content')
  })

  it('sends the details of reasoning and the signature of a call back always', () => {
    const turn = [
      assistant(thinking('', { reasoning_details: [{ id: 1 }] }), call('a', { thought_signature: 's' })),
      result('a'),
    ]
    expect(convert([user('hi'), ...turn, user('and?')])[1]).to.deep.include({
      reasoning_details: [{ id: 1 }],
      tool_calls: [
        {
          ...{ id: 'a', type: 'function', function: { name: 'Read', arguments: '{"path":"a"}' } },
          extra_content: { google: { thought_signature: 's' } },
        },
      ],
    })
  })

  it('has the files of results in a message of the user behind them', () => {
    const attachments = [
      { name: 'a.png', mediaType: 'image/png', base64: 'AA==' },
      { name: 'b.pdf', mediaType: 'application/pdf', base64: 'BB==' },
    ]
    const results = [{ id: 'a', toolName: 'Read', output: 'two files', isError: false, attachments }]
    expect(convert([assistant(call('a')), { role: 'tool', results }]).at(-1)).to.deep.equal({
      role: 'user',
      content: [
        { type: 'text', text: 'The files of the tool results above:' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
        { type: 'file', file: { filename: 'b.pdf', file_data: 'data:application/pdf;base64,BB==' } },
      ],
    })
  })

  it('has ids of nine characters for Mistral, and an answer between a result and the next message of the user', () => {
    const history = [user('hi'), assistant(call('call_of_another')), result('call_of_another'), user('go on')]
    const roles = (model: string) => convert(history, model).map(({ role }) => role)
    expect(roles('gpt-5.1')).to.deep.equal(['user', 'assistant', 'tool', 'user'])
    expect(roles('mistral-large')).to.deep.equal(['user', 'assistant', 'tool', 'assistant', 'user'])
    expect(convert(history, 'mistral-large')[2]?.['tool_call_id']).to.match(/^[A-Za-z0-9]{9}$/)
    expect(convert(history, 'gpt-5.1')[2]?.['tool_call_id']).to.equal('call_of_another')
  })
})
