import { expect } from 'chai'
import { NAMESPACE, toConversation } from '../../../../shared/agent/providers/chat/conversation.ts'
import type { AssistantBlock, Message } from '../../../../shared/agent/providers/port.ts'
import { request } from '../ai-sdk/setup.ts'

const ORIGIN = 'models.test'
const user = (text: string): Message => ({ role: 'user', text })
const assistant = (...blocks: AssistantBlock[]): Message => ({ role: 'assistant', blocks })
const say = (text: string): AssistantBlock => ({ type: 'text', text })
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

const file = (mediaType: string, name = 'a') => ({ name, mediaType, base64: 'aGk=' })
const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } }

describe("a history in OpenAI's chat format", () => {
  it('has a call with its arguments as JSON, its text or none beside it, and its result behind it', () => {
    const tool_calls = [{ id: 'a', type: 'function', function: { name: 'Read', arguments: '{"path":"a"}' } }]
    expect(convert([user('hi'), assistant(call('a')), result('a')])).to.deep.equal([
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: null, tool_calls },
      { role: 'tool', tool_call_id: 'a', content: 'of a' },
    ])
    expect(convert([assistant(say('I '), say('look.'), call('a'))])).to.deep.equal([
      { role: 'assistant', content: 'I look.', tool_calls },
    ])
  })

  it('joins neighbours of one role, but no results of tools', () => {
    const shown: Message = { role: 'user', text: 'two', attachments: [file('image/png')] }
    const parts = (...texts: string[]) => texts.map((text) => ({ type: 'text', text }))
    const joined: [Message[], unknown][] = [
      [[user('one'), user(''), user('two')], 'one\n\ntwo'],
      [
        [user('one'), shown],
        [...parts('one', 'two'), image],
      ],
      [
        [shown, user('one')],
        [...parts('two'), image, ...parts('one')],
      ],
      [
        [shown, shown],
        [...parts('two'), image, ...parts('two'), image],
      ],
      [[assistant(say('one')), assistant(call('a'))], 'one'],
    ]
    for (const [messages, content] of joined) {
      const converted = convert(messages)
      expect(converted.map((message) => message['content'])).to.deep.equal([content])
    }
    expect(convert([assistant(call('a'), call('b')), result('a'), result('b')])).to.have.length(3)
  })

  it('leaves out an answer of nothing, and thinking that the server has not asked back', () => {
    const foreign: AssistantBlock = { type: 'thinking', text: 'hm', meta: { google: { field: 'x' } } }
    for (const unsaid of [{ type: 'thinking', text: 'hm' } as const, foreign])
      expect(convert([user('one'), assistant(unsaid), user('two')])).to.deep.equal([
        { role: 'user', content: 'one\n\ntwo' },
      ])
  })

  it('sends thinking back in its field until the next message of the user, and only to its own server', () => {
    const field = { field: 'reasoning_content' }
    const turn = [assistant(thinking('h', field), thinking('m', field), call('a')), result('a')]
    const foreign = assistant(thinking('hm', field, 'other.test'), call('a'))
    expect(convert([user('hi'), ...turn])[1]).to.include({ reasoning_content: 'hm' })
    expect(convert([user('hi'), ...turn, user('and?')])[1]).to.not.have.property('reasoning_content')
    expect(convert([user('hi'), foreign, result('a')])[1]).to.not.have.property('reasoning_content')
    expect(convert([user('hi'), assistant(thinking('hm', field))])[1]).to.deep.equal({
      ...{ role: 'assistant', content: '', reasoning_content: 'hm' },
    })
  })

  it('sends the details of reasoning and the signature of a call back always', () => {
    const turn = [
      assistant(thinking('', { reasoning_details: [{ id: 1 }] }), call('a', { thought_signature: 's' })),
      result('a'),
    ]
    expect(convert([user('hi'), ...turn, user('and?')])[1]).to.deep.equal({
      ...{ role: 'assistant', content: null, reasoning_details: [{ id: 1 }] },
      tool_calls: [
        {
          ...{ id: 'a', type: 'function', function: { name: 'Read', arguments: '{"path":"a"}' } },
          extra_content: { google: { thought_signature: 's' } },
        },
      ],
    })
  })

  const FILES: [mediaType: string, part: object][] = [
    ['image/png', image],
    ['application/pdf', { type: 'file', file: { filename: 'a', file_data: 'data:application/pdf;base64,aGk=' } }],
    ['audio/wav', { type: 'input_audio', input_audio: { data: 'aGk=', format: 'wav' } }],
    ['audio/mpeg', { type: 'input_audio', input_audio: { data: 'aGk=', format: 'mp3' } }],
    ['text/plain', { type: 'text', text: '<attachment name="a">\nhi\n</attachment>' }],
  ]
  for (const [mediaType, part] of FILES)
    it(`has ${mediaType} of a message beside its text, and that of a result in a message of the user behind it`, () => {
      const attachments = [file(mediaType)]
      expect(convert([{ role: 'user', text: ' ', attachments }])).to.deep.equal([{ role: 'user', content: [part] }])
      const results = [{ id: 'a', toolName: 'Read', output: 'a file', isError: false, attachments }]
      expect(convert([assistant(call('a')), { role: 'tool', results }]).slice(1)).to.deep.equal([
        { role: 'tool', tool_call_id: 'a', content: 'a file' },
        { role: 'user', content: [{ type: 'text', text: 'The files of the tool results above:' }, part] },
      ])
    })

  it('has ids of nine characters for Mistral, and an answer between a result and the next message of the user', () => {
    const history = [user('hi'), assistant(call('call_of_another')), result('call_of_another'), user('go on')]
    const roles = (model: string, messages = history) => convert(messages, model).map(({ role }) => role)
    expect(roles('gpt-5.1')).to.deep.equal(['user', 'assistant', 'tool', 'user'])
    expect(roles('mistral-large')).to.deep.equal(['user', 'assistant', 'tool', 'assistant', 'user'])
    expect(roles('mistral-large', [...history.slice(0, 3), assistant(say('so'))])).to.deep.equal([
      ...['user', 'assistant', 'tool', 'assistant'],
    ])
    expect(convert(history, 'mistral-large')[2]?.['tool_call_id']).to.match(/^[A-Za-z0-9]{9}$/)
    expect(convert(history, 'gpt-5.1')[2]?.['tool_call_id']).to.equal('call_of_another')
  })
})
