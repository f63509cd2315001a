import { expect } from 'chai'
import { readUiRequest, type UiRequest } from '../../../../services/gateway/dialects/ui/request.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { PERMISSION_ID, RUN_ID } from '../../setup.ts'

const OTHER = `perm_${'cd'.repeat(16)}`
const text = (said: string) => ({ type: 'text', text: said })
const file = { type: 'file', url: 'data:image/png;base64,aGk=', mediaType: 'image/png' }
const user = (...parts: object[]) => ({ id: 'm', role: 'user', parts })
const answer = (...parts: object[]) => ({ id: RUN_ID, role: 'assistant', parts })
const approval = (fields: object = {}, state = 'approval-responded') => ({
  ...{ type: 'dynamic-tool', toolName: 'Write', toolCallId: 'c', state },
  approval: { id: PERMISSION_ID, approved: true, ...fields },
})
const own = (id: string, fields: object) => ({
  type: 'tool-pick',
  toolCallId: id,
  state: 'output-available',
  ...fields,
})
const read = (...messages: object[]) => readUiRequest({ id: 'chat', messages })
const call = (id: string, output: string, isError?: true) => ({
  runId: RUN_ID,
  toolUseId: id,
  output,
  ...(isError && { isError }),
})

const READ: [what: string, messages: object[], expected: Partial<UiRequest> | object][] = [
  [
    'a message has its texts',
    [user(text(' one'), text(''), text('two '))],
    { kind: 'prompt', prompt: 'one\n\ntwo', answers: [] },
  ],
  [
    'or files alone',
    [user(file)],
    { prompt: '', attachments: [{ at: '/messages/0/parts/0', data: 'aGk=', media_type: 'image/png' }] },
  ],
  [
    'an approval is an answer',
    [answer(approval())],
    { kind: 'answers', answers: [{ id: PERMISSION_ID, allow: true }] },
  ],
  [
    'with its reason',
    [answer(approval({ approved: false, reason: 'no' }))],
    { answers: [{ id: PERMISSION_ID, allow: false, reason: 'no' }] },
  ],
  [
    'one beside a request that still waits, which is known',
    [answer(approval(), approval({ id: OTHER }, 'approval-requested'))],
    { runId: RUN_ID, answers: [{ id: PERMISSION_ID, allow: true }], known: new Set([PERMISSION_ID, OTHER]) },
  ],
  [
    'an earlier message may have been answered, too',
    [
      answer(approval(), approval({ id: 'of-another' }), approval({ id: OTHER }, 'approval-requested')),
      user(text('hi')),
    ],
    { kind: 'prompt', answers: [{ id: PERMISSION_ID, allow: true }] },
  ],
  [
    'the outputs of the tools of the page are answers',
    [
      answer(
        own('a', { output: 'red' }),
        own('b', { output: { n: 1 } }),
        own('c', {}),
        own('d', { state: 'output-error', errorText: 'no' }),
      ),
    ],
    {
      kind: 'answers',
      outputs: [call('a', 'red'), call('b', '{"n":1}'), call('c', 'null'), call('d', 'no', true)],
      known: new Set(['a', 'b', 'c', 'd']),
    },
  ],
  [
    'those that wait, of the server or of another are none',
    [
      answer(
        own('a', { state: 'input-available' }),
        own('b', { providerExecuted: true, output: 'x' }),
        own('c', { toolCallId: 7 }),
      ),
      { ...answer(own('a', { output: 'x' })), id: 'of-another' },
      user(text('hi')),
    ],
    { outputs: [] },
  ],
]

describe('a request of useChat', () => {
  for (const [what, messages, expected] of READ)
    it(`D31.1: ${what}`, () => {
      expect(read(...messages)).to.deep.include(expected)
    })

  it('D31.2: the history has the texts, the files and the calls with their results', () => {
    const past = read(
      { id: 's', role: 'system', parts: [text('x')] },
      user(text('look'), file),
      answer(
        text('I look.'),
        { ...own('a', { input: { of: 2 } }), output: { n: 1 } },
        { ...own('b', {}), toolName: 'Read', errorText: 'no' },
        own('c', {}),
      ),
      user(text('and?')),
    )
    const calls = (id: string, tool_name: string, input: object, output: string, is_error: boolean) => [
      { type: 'tool_use', id, tool_name, input },
      { type: 'tool_result', id, tool_name, output, is_error },
    ]
    const [first, firstResult] = calls('call_2', 'pick', { of: 2 }, '{"n":1}', false)
    const [second, secondResult] = calls('call_3', 'Read', {}, 'no', true)
    expect('seed' in past && past.seed()).to.deep.equal([
      {
        ...{ role: 'user', content: 'look', client: 'm' },
        attachments: [{ at: '/messages/1/parts/1', data: 'aGk=', media_type: 'image/png' }],
      },
      { role: 'assistant', blocks: [text('I look.'), first] },
      { role: 'tool', blocks: [firstResult] },
      { role: 'assistant', blocks: [second] },
      { role: 'tool', blocks: [secondResult] },
      { role: 'assistant', content: '(no answer)', client: RUN_ID },
    ])
  })

  it('D31.5a: a message is meant anew when it is generated again, or was edited', () => {
    const againOf = (fields: JsonObject) => {
      const request = readUiRequest({ id: 'chat', messages: [user(text('hi'))], ...fields })
      return 'again' in request && request.again
    }
    expect(againOf({ trigger: 'submit-message' })).to.equal('never')
    expect(againOf({ trigger: 'submit-message', messageId: 'm' })).to.equal('ended')
    expect(againOf({ trigger: 'regenerate-message', messageId: 'm' })).to.equal('always')
  })

  it('D46.3: has the tools of the page where it sends them, and one message in place of a list', () => {
    const tools = [{ name: 'pick' }]
    const request = readUiRequest({
      id: 'chat',
      message: user(text('hi')),
      client_tools: tools,
      system: 's',
      model: 'm',
      x: 1,
    })
    expect(request).to.deep.include({
      ...{ prompt: 'hi', clientTools: tools, system: 's', model: 'm', ignored: ['/x'], listed: { id: 'm' } },
    })
    expect(read(user(text('hi')))).to.deep.include({ clientTools: undefined, listed: { id: 'm', path: [], texts: {} } })
  })

  it('D31.1: is refused at the place of what is wrong', () => {
    for (const [messages, param] of [
      [[user(text('hi'), { type: 'data-x' })], '/messages/0/parts/1/type'],
      [[answer(approval({ approved: null }))], '/messages/0/parts/0/approval/approved'],
      [[answer(approval({}, 'approval-requested'))], '/messages/0'],
      [[answer(approval({ id: 'x' }))], '/messages/0/parts/0/approval/id'],
    ] as const)
      expect(() => read(...messages), param)
        .to.throw()
        .with.property('param', param)
  })
})
