// Tests the routes of all dialects that start a run: what a message brings along, and the answers to calls of the client.
import { expect } from 'chai'
import { callIdOf } from '../../../../services/gateway/dialects/openai/response-id.ts'
import type { Broker } from '../../../../shared/cluster/commands/broker.ts'
import type { MessagePage } from '../../../../shared/cluster/commands/sessions.ts'
import { clientCallId } from '../../../../shared/cluster/permissions/store.ts'
import type { AgentEvent } from '../../../../shared/kernel/events.ts'
import { sessionOf } from '../../session-of.ts'
import { DONE, framesOf, LIVE_RUN, RUN_ID, useGateways } from '../../setup.ts'
import * as of from '../recorded.ts'

const FILE = `file_${'a'.repeat(32)}`
const record = {
  file_id: FILE,
  name: 'a.txt',
  media_type: 'text/plain',
  bytes: 1,
  sha256: '',
  created_at: '',
  expires_at: '',
}
const part = { type: 'text', text: 'hi' }
const user = (content: unknown) => ({ id: 'm', role: 'user', content })
const url = `/v1/files/${FILE}/content`
const a2a = (parts: object[]) => ({
  ...{ jsonrpc: '2.0', id: 1, method: 'SendMessage' },
  params: { message: { messageId: 'm', contextId: 's', parts } },
})

/** A message with a file, in each dialect. */
const DOORS: [path: string, body: object][] = [
  [
    '/openai/v1/chat/completions',
    { model: 'main', messages: [user([part, { type: 'file', file: { file_id: FILE } }])] },
  ],
  [
    '/openai/v1/responses',
    {
      model: 'main',
      conversation: 's',
      input: [
        user([
          { type: 'input_text', text: 'hi' },
          { type: 'input_file', file_id: FILE },
        ]),
      ],
    },
  ],
  [
    '/ag-ui',
    {
      threadId: 's',
      runId: 'r',
      messages: [user([part, { type: 'document', source: { type: 'file', value: FILE } }])],
    },
  ],
  [
    '/ui/chat',
    { id: 's', messages: [{ id: 'm', role: 'user', parts: [part, { type: 'file', url, mediaType: 'text/plain' }] }] },
  ],
  ['/a2a', a2a([{ text: 'hi' }, { url }])],
]

const page = { id: 's', messages: [{ id: 'm', role: 'user', parts: [part] }] }
const opened = { threadId: 's', runId: 'r', messages: [user('hi')] }
const said = { prompt: 'hi', id: 'm', path: [], texts: {} }
const tools = [{ name: 'pick' }]

/** A message to a session in the dialects of pages, and what the session gets. */
const MESSAGES: [path: string, body: object, message: object][] = [
  ['/ui/chat', page, said],
  [
    '/ui/chat',
    { ...page, model: 'small', system: 'Be brief.', client_tools: tools },
    { ...said, model: 'small', system_prompt: 'Be brief.', client_tools: tools },
  ],
  ['/ag-ui', opened, { ...said, client_tools: [] }],
  [
    '/ag-ui',
    { ...opened, tools, messages: [{ role: 'system', content: 'Be kind.' }, user('hi')] },
    { prompt: 'hi', id: 'm', client_tools: tools, system_prompt: 'Be kind.' },
  ],
]

const own = (id: string): AgentEvent => ({
  ...{ type: 'tool_use', id, tool_name: 'pick', input: {}, executor: 'client', expires_at: '2026-11-21T09:35:00.000Z' },
})
const answered: AgentEvent = {
  type: 'tool_result',
  id: 'c',
  tool_name: 'pick',
  output: 'red',
  is_error: false,
  how: 'reply',
}
const ref = { runId: RUN_ID, part: 1 }
const tool = { id: 't', role: 'tool', toolCallId: 'c', content: 'red' }
const shown = { type: 'tool-pick', toolCallId: 'c', state: 'output-available', output: 'red' }

/** The answer to a call of the client, in each dialect that has such calls in sessions. */
const ANSWERS: [path: string, body: object][] = [
  [
    '/openai/v1/responses',
    { model: 'main', input: [{ type: 'function_call_output', call_id: callIdOf(ref, 'c'), output: 'red' }] },
  ],
  ['/ag-ui', { threadId: 's', runId: 'r', messages: [user('hi'), { id: 'a', role: 'assistant', content: '' }, tool] }],
  [
    '/ui/chat',
    {
      id: 's',
      messages: [
        { id: `run_${'ab'.repeat(16)}`, role: 'assistant', parts: [{ ...shown, toolCallId: 'old' }] },
        { id: RUN_ID, role: 'assistant', parts: [shown] },
      ],
    },
  ],
]

const messageOf = (id: string, role: 'user' | 'assistant', run_id: string, text: string) =>
  ({ id, parent_id: null, at: '', role, run_id, blocks: [{ type: 'text', text }] }) as MessagePage['messages'][number]
const BEFORE = `run_${'cd'.repeat(16)}`
const HISTORY = [
  ...[messageOf('u1', 'user', BEFORE, 'one'), messageOf('a1', 'assistant', BEFORE, 'before')],
  ...[messageOf('u2', 'user', RUN_ID, 'two'), messageOf('a2', 'assistant', RUN_ID, 'newest')],
]

describe('a message in each dialect', () => {
  const start = useGateways({ perTest: false })
  const calls: unknown[] = []
  let post: Awaited<ReturnType<typeof start>>['post']
  let waits: boolean
  let base: string
  before(async () => {
    const open = async (request: object) => {
      calls.push(request)
      return { runId: RUN_ID, frames: framesOf(of.turn(1), DONE) }
    }
    const methods: Partial<Broker> = {
      startRun: async (_tenant, request) => open(request),
      sendMessage: async (_tenant, _id, message) => open(message),
      getSession: async () => sessionOf('s', waits ? { active_run_id: RUN_ID } : { last_run_id: RUN_ID }),
      getRun: async () => ({ ...LIVE_RUN, session_id: 's', ...(waits && { tool_call_ids: ['c'] }) }),
      findPermission: async () => undefined,
      listMessages: async () => ({ messages: HISTORY, branches: [], next_cursor: null }),
      answerCall: async (_tenant, scope, id, { answer }) => void calls.push([scope, id, answer]),
      followRun: async () => framesOf(of.turn(1), own('c'), answered, ...of.said('bye'), DONE),
    }
    const files = { files: { get: async () => record } } as never
    ;({ post, url: base } = await start({ methods, files }))
  })
  beforeEach(() => {
    calls.length = 0
    waits = true
  })

  for (const [path, body] of DOORS)
    it(`D48.1: has its files as those of the run, over ${path}`, async () => {
      await (await post(path, body)).text()
      const { files } = calls.at(-1) as { files: object[] }
      expect(files).to.deep.equal([{ file_id: FILE, name: 'a.txt', media_type: 'text/plain', bytes: 1 }])
    })

  for (const [path, body, message] of MESSAGES)
    it(`D31.2: has what its page says along, and nothing else, over ${path}: ${JSON.stringify(message)}`, async () => {
      await (await post(path, body)).text()
      const { background, priority, if_waiting, ...sent } = calls.at(-1) as Record<string, unknown>
      expect(sent).to.deep.equal(message)
      expect([background, priority, if_waiting]).to.deep.equal([true, 'interactive', 'deny'])
    })

  for (const [path, body] of ANSWERS)
    it(`D46: that answers a call of the client goes on with its run, over ${path}, also when that has ended`, async () => {
      for (waits of [true, false]) {
        const text = await (await post(path, body)).text()
        expect(calls.splice(0), text).to.deep.equal([
          ['s', clientCallId(RUN_ID, 'c'), { output: 'red', isError: false }],
        ])
        expect(text).to.include('bye')
      }
    })

  const agUi = async (...messages: object[]) => (await post('/ag-ui', { threadId: 's', runId: 'r', messages })).text()
  const answerOfNothing = { id: 'a', role: 'assistant', content: '' }

  it('D39.1: to a thread that waits for calls of its client is sent, behind the results that come with it', async () => {
    await agUi(user('hi'))
    expect(calls.splice(0)).to.containSubset([{ prompt: 'hi' }])
    await agUi(user('hi'), answerOfNothing, tool, user('and?'))
    expect(calls.splice(0)).to.containSubset([['s', clientCallId(RUN_ID, 'c')], { prompt: 'and?' }])
  })

  it('D31.7a: that is none gets what the thread waits for again, or is refused where it waits for nothing', async () => {
    expect(await agUi(user('hi'), answerOfNothing))
      .to.include('"type":"RUN_STARTED"')
      .and.include('"type":"RUN_FINISHED"')
    waits = false
    expect(await agUi(user('hi'), answerOfNothing)).to.include('messages must end with a text of the user')
    expect(calls).to.deep.equal([])
  })

  it('D31.7a: that is none of a client without any gets those before the newest answer, whose run is repeated', async () => {
    const thread = await agUi()
    expect(thread).to.include('"before"').and.include('bye').and.not.include('newest')
    const chat = await fetch(`${base}/ui/chat/s`)
    expect(await chat.text())
      .to.include('"before"')
      .and.include('bye')
  })
})
