import { expect } from 'chai'
import { type AgUiRequest, readAgUiRequest } from '../../../../services/gateway/dialects/ag-ui/request.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import { PERMISSION_ID, RUN_ID } from '../../setup.ts'

const user = { id: 'm', role: 'user', content: 'hi' }
const assistant = { id: 'a', role: 'assistant', content: 'hm' }
const read = (body: JsonObject) => readAgUiRequest({ threadId: 't', runId: 'r', ...body })
const resume = (fields: object) => ({ resume: [{ interruptId: `${RUN_ID}/${PERMISSION_ID}`, ...fields }] })
const resumed = (answer: object) => ({ resumed: { engineRunId: RUN_ID, answers: [{ id: PERMISSION_ID, ...answer }] } })
const tool = (id: string, fields: object) => ({ id, role: 'tool', toolCallId: id, ...fields })
const payload = (fields: object) => resume({ payload: fields })

const READ: [what: string, body: JsonObject, expected: Partial<AgUiRequest> | object][] = [
  [
    'a message is new where the client has nothing to answer',
    { messages: [user] },
    { hasMessage: true, isOpening: false },
  ],
  [
    'a list that ends with an answer has no new message',
    { messages: [user, assistant] },
    { hasMessage: false, results: [] },
  ],
  [
    'a client without messages asks for those of the thread',
    {},
    { isOpening: true, hasMessage: false, resumed: undefined },
  ],
  ['one that answers does not', payload({ approved: true }), { isOpening: false }],
  [
    'a message of a sub-agent is none of the thread',
    { messages: [{ ...user, subagentRunId: 's' }] },
    { isOpening: true },
  ],
  ['a version from 1.0 on is known', { protocolVersion: '1.0' }, { isCurrent: true }],
  ['also a later one', { protocolVersion: '12.30' }, { isCurrent: true }],
  ['an earlier one is not', { protocolVersion: '0.9' }, { isCurrent: false }],
  ['and no version neither', { protocolVersion: 'v1.0' }, { isCurrent: false }],
  ['nor a longer one', { protocolVersion: '1.0.1' }, { isCurrent: false }],
  ['an approval may be a flag', resume({ payload: false }), resumed({ allow: false })],
  [
    'or an object',
    payload({ approved: true, reason: '', editedArgs: { a: 1 } }),
    resumed({ allow: true, input: { a: 1 } }),
  ],
  ['whose reason is read', payload({ approved: true, reason: 'fine' }), resumed({ allow: true, reason: 'fine' })],
  [
    'a refusal changes no input',
    payload({ approved: false, reason: 'no', editedArgs: {} }),
    resumed({ allow: false, reason: 'no' }),
  ],
  ['an interrupt may be cancelled', resume({ status: 'cancelled' }), resumed({ allow: false, reason: 'cancelled' })],
  [
    'a new message may come with that',
    { ...resume({ status: 'cancelled' }), messages: [user] },
    { ...resumed({ allow: false, reason: 'a new message came' }), hasMessage: true },
  ],
  [
    'with an approval the first message is the one that was answered',
    { ...resume({ payload: true }), messages: [user] },
    { ...resumed({ allow: true }), hasMessage: false },
  ],
  [
    'and behind an answer a message is new',
    { ...resume({ payload: true }), messages: [user, assistant, user] },
    { ...resumed({ allow: true }), hasMessage: true },
  ],
  [
    'results are those behind the last answer',
    {
      messages: [
        tool('b', { content: 'old' }),
        assistant,
        tool('c', { content: 'new' }),
        tool('d', { content: '', error: 'no' }),
        user,
      ],
    },
    {
      results: [
        { toolUseId: 'c', output: 'new', isError: false },
        { toolUseId: 'd', output: 'no', isError: true },
      ],
    },
  ],
  [
    'a result may be empty',
    { messages: [tool('c', { content: '' })] },
    { results: [{ toolUseId: 'c', output: '', isError: false }] },
  ],
  [
    'its own tools have the native names',
    { tools: [{ name: 'f', description: 'd', parameters: { type: 'object' } }, { name: 'g' }] },
    { clientTools: [{ name: 'f', description: 'd', input_schema: { type: 'object' } }, { name: 'g' }] },
  ],
  ['what is not used is named', { state: { a: 1 }, forwardedProps: {} }, { ignored: ['/state'] }],
]

describe('a request of AG-UI', () => {
  for (const [what, body, expected] of READ)
    it(`D31.7a: ${what}`, () => {
      expect(read(body)).to.deep.include(expected)
    })

  it('D31.7a: is refused at the place of what is wrong', () => {
    const at = '/resume/0'
    for (const [body, param] of [
      [{ runId: 'a/b' }, '/runId'],
      [resume({ interruptId: `x${RUN_ID}/${PERMISSION_ID}` }), `${at}/interruptId`],
      [resume({ interruptId: `${RUN_ID}/${PERMISSION_ID}x` }), `${at}/interruptId`],
      [payload({}), `${at}/payload/approved`],
      [payload({ approved: 'yes' }), `${at}/payload/approved`],
      [resume({ payload: 'yes' }), `${at}/payload`],
    ] as const)
      expect(() => read(body))
        .to.throw()
        .with.property('param', param)
  })
})
