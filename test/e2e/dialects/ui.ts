import { randomUUID } from 'node:crypto'
import * as react from '@ai-sdk/react'
import type { DynamicToolUIPart, UIMessage } from 'ai'
import * as seven from 'ai'
import * as six from 'ai-6'
import * as olderReact from 'ai-sdk-react-3'
import { expect } from 'chai'
import { until } from '../../support/until.ts'
import { agent, type RunningProduct, tool, write } from './dialect-product.ts'

const STATE_OF_LIST = tool('TodoWrite', { todos: [] })

type Packages = Pick<
  typeof seven,
  | 'DefaultChatTransport'
  | 'lastAssistantMessageIsCompleteWithApprovalResponses'
  | 'lastAssistantMessageIsCompleteWithToolCalls'
> &
  Pick<typeof react, 'Chat'>
type Chat = InstanceType<typeof react.Chat<UIMessage>>

/** What `useChat` is made of, in the version that npm installs beside React 19, and in the one beside React 18. */
export const UI_PACKAGES: Record<'7' | '6', Packages> = {
  '7': { ...seven, ...react },
  '6': { ...six, ...olderReact } as unknown as Packages,
}

const chatsOf =
  (product: RunningProduct, packages: Packages) =>
  (messages: UIMessage[] = [], id = `chat-${randomUUID()}`): Chat =>
    new packages.Chat<UIMessage>({
      id,
      messages,
      transport: new packages.DefaultChatTransport({ api: `${product().url}/ui/chat` }),
      sendAutomaticallyWhen: packages.lastAssistantMessageIsCompleteWithApprovalResponses,
    })

const answerOf = ({ lastMessage }: Chat) => (lastMessage?.role === 'assistant' ? lastMessage.parts : [])

const textOf = (chat: Chat) =>
  answerOf(chat)
    .flatMap((part) => (part.type === 'text' ? [part.text] : []))
    .join('|')

/** `useChat` without a page: the same class with the same transport. What a person does with it in a page is in fronts/stories.ts. */
export function uiTests(product: RunningProduct, packages: Packages): void {
  const chatWith = chatsOf(product, packages)
  const callsOf = (chat: Chat) =>
    answerOf(chat).filter((part): part is DynamicToolUIPart => part.type === 'dynamic-tool')
  const approvalsOf = (chat: Chat) => callsOf(chat).filter(({ state }) => state === 'approval-requested')

  /** Answers what waits, and waits until the page has gone on with it. */
  async function answer(chat: Chat, approved: boolean, reason?: string): Promise<void> {
    for (const { approval } of approvalsOf(chat))
      await chat.addToolApprovalResponse({ id: approval?.id ?? '', approved, ...(reason !== undefined && { reason }) })
    await until(() => chat.status === 'ready' && callsOf(chat).every(({ state }) => state !== 'approval-responded'), {
      what: 'the rest of the answer',
      lastSeen: () => [chat.status, chat.error, callsOf(chat)],
    })
  }

  it('useChat shows the thoughts, the texts and the call of a turn, and the next message goes on with the conversation', async () => {
    const chat = chatWith()
    await chat.sendMessage({ text: `/think hm\n${STATE_OF_LIST}\n/say done` })
    expect(chat.error).to.equal(undefined)
    expect(answerOf(chat).map(({ type }) => type)).to.deep.equal([
      ...['step-start', 'reasoning', 'text', 'dynamic-tool'],
      ...['step-start', 'text', 'text'],
    ])
    expect(answerOf(chat).find(({ type }) => type === 'reasoning')).to.include({ text: 'hm', state: 'done' })
    expect(callsOf(chat)[0]).to.include({ toolName: 'TodoWrite', state: 'output-available', providerExecuted: true })
    expect(textOf(chat)).to.match(/\|done\|/)
    expect(chat.lastMessage?.metadata).to.include({ sessionId: chat.id, stopReason: 'end_turn' })
    await chat.sendMessage({ text: '/say again' })
    expect([chat.messages.length, textOf(chat)]).to.deep.equal([4, 'again'])
    const { body } = await product().call('GET', `/sessions/${chat.id}`)
    expect(body).to.include({ message_count: 5 })
  })

  it('the answer stops at an approval; allowed in the page, the same message goes on and the tool has run', async () => {
    const chat = chatWith()
    await chat.sendMessage({ text: `${write('a.txt')}\n/say bye` })
    const [asked] = approvalsOf(chat)
    expect(asked?.approval?.['descriptor'])
      .to.include({ message: 'Write 5 bytes to the file a.txt.' })
      .and.have.nested.property('preview.kind', 'diff')
    await answer(chat, true)
    expect(callsOf(chat)).to.have.length(1)
    expect(callsOf(chat)[0]).to.include({ state: 'output-available' })
    expect([chat.messages.length, textOf(chat).split('|').at(1)]).to.deep.equal([2, 'bye'])
  })

  it('D46.3: the page calls its own tools in onToolCall, the same message goes on with their outputs, and a message ends the wait for one', async () => {
    const get_order = { name: 'get_order', input_schema: { type: 'object', properties: { id: { type: 'string' } } } }
    const asked: unknown[] = []
    const chat: Chat = new packages.Chat<UIMessage>({
      id: `chat-${randomUUID()}`,
      transport: new packages.DefaultChatTransport({
        api: `${product().url}/ui/chat`,
        body: { client_tools: [get_order, { name: 'ask_person' }] },
      }),
      sendAutomaticallyWhen: packages.lastAssistantMessageIsCompleteWithToolCalls,
      onToolCall({ toolCall: { toolName, toolCallId, input, dynamic } }) {
        if (dynamic || toolName !== 'get_order') return
        asked.push(input)
        void chat.addToolOutput({ tool: 'get_order' as never, toolCallId, output: { state: 'sent' } })
      },
    })
    const twice = `${tool('get_order', { id: 'A' })}\n${tool('get_order', { id: 'B' })}\n/say bye`
    await chat.sendMessage({ text: `${STATE_OF_LIST}\n${twice}` })
    await until(() => chat.status === 'ready' && textOf(chat).includes('bye'), {
      what: 'the rest of the answer',
      lastSeen: () => [chat.status, chat.error, chat.messages],
    })
    expect([chat.messages.length, asked]).to.deep.equal([2, [{ id: 'A' }, { id: 'B' }]])
    const own = answerOf(chat).filter(({ type }) => type === 'tool-get_order')
    expect(own.map((part) => 'output' in part && part.output)).to.deep.equal([{ state: 'sent' }, { state: 'sent' }])
    expect(textOf(chat)).to.include('get_order answered: {"state":"sent"}')
    await chat.sendMessage({ text: `${tool('ask_person', {})}\n/say not that` })
    expect(answerOf(chat).at(-1)).to.include({ type: 'tool-ask_person', state: 'input-available' })
    const reloaded = (await (await fetch(`${product().url}/ui/chat/${chat.id}`)).json()) as UIMessage[]
    expect(reloaded.at(-1)?.parts.at(-1)).to.include({ type: 'tool-ask_person', state: 'input-available' })
    await chat.sendMessage({ text: '/say instead' })
    expect([chat.error, textOf(chat)]).to.deep.equal([undefined, 'instead'])
  })

  it('a denied call is shown as denied, with its reason, and the model goes on', async () => {
    const chat = chatWith()
    await chat.sendMessage({ text: `${write('a.txt')}\n/say bye` })
    await answer(chat, false, 'not on a Friday')
    expect(callsOf(chat)[0]).to.include({ state: 'output-denied' })
    expect(callsOf(chat)[0]?.approval).to.include({ approved: false, reason: 'not on a Friday' })
    expect(textOf(chat)).to.include('not on a Friday')
  })

  it("a sub-agent's call asks in the page, too, and its own result replaces the one for the time being", async () => {
    const chat = chatWith()
    await chat.sendMessage({ text: `${agent(write('a.txt'), '/say wrote it')}\n/say bye` })
    expect(approvalsOf(chat)).to.have.length(1)
    await answer(chat, true)
    expect(callsOf(chat).map(({ toolName, state }) => [toolName, state])).to.deep.equal([
      ['Agent', 'output-available'],
      ['Write', 'output-available'],
    ])
    expect(callsOf(chat)[0]?.output).to.match(/wrote it/)
    const sub = answerOf(chat).find(({ type }) => type === 'data-subagent')
    expect(sub).to.have.nested.property('data.status', 'completed')
  })

  it('a page that comes back gets the whole answer that is being given, and nothing where none is', async () => {
    const chat = chatWith()
    const sending = chat.sendMessage({ text: '/say before\n/sleep 300\n/say after' })
    await until(() => textOf(chat).includes('before'), { what: 'the beginning of the answer' })
    await chat.stop()
    await sending
    expect(textOf(chat)).not.to.include('after')
    const reloaded = chatWith(chat.messages.slice(0, 1), chat.id)
    await reloaded.resumeStream()
    expect(textOf(reloaded)).to.match(/before\|after$/)
    const idle = chatWith(reloaded.messages, chat.id)
    await idle.resumeStream()
    expect(idle.messages).to.have.length(2)
  })

  const listed = async (chat: Chat) => (await product().call('GET', `/ui/chat/${chat.id}`)).body as UIMessage[]

  it('D31.5b: a page that is opened anew shows the chat, with what waits for an answer, and goes on with it', async () => {
    const chat = chatWith()
    await chat.sendMessage({ text: '/fail provider_rejected' })
    await chat.sendMessage({ text: `${write('a.txt')}\n/say bye` })
    const reloaded = chatWith(await listed(chat), chat.id)
    expect(reloaded.messages.map(({ id, role }) => [id, role])).to.deep.equal(
      chat.messages.map(({ id, role }) => [id, role]),
    )
    expect(reloaded.messages[1]?.metadata).to.include({ errorCode: 'provider_rejected' })
    await reloaded.resumeStream() // A page may do so at once: it gets the same message.
    expect([reloaded.messages.length, approvalsOf(reloaded).length]).to.deep.equal([4, 1])
    await answer(reloaded, true)
    expect(textOf(reloaded)).to.include('bye')
    const again = await listed(chat)
    expect(again.at(-1)?.parts.map(({ type }) => type)).to.deep.equal(answerOf(reloaded).map(({ type }) => type))
    expect(await listed(chatWith())).to.deep.equal([])
  })

  it('DELETE of the stream cancels the run, and the page is told', async () => {
    const chat = chatWith()
    const sending = chat.sendMessage({ text: '/say before\n/sleep 60000' })
    await until(() => textOf(chat).includes('before'), { what: 'the beginning of the answer' })
    const response = await fetch(`${product().url}/ui/chat/${chat.id}/stream`, { method: 'DELETE' })
    expect(response.status).to.equal(204)
    await sending
    const { body } = await product().call('GET', `/runs/${chat.lastMessage?.id}`)
    expect(body).to.include({ status: 'cancelled' })
  })
}

/** The same for many pages at a time. */
export function manyChatsTest(product: RunningProduct): void {
  const chatWith = chatsOf(product, UI_PACKAGES['7'])
  it('50 chats at a time get their own answers', async () => {
    const chats = Array.from({ length: 50 }, () => chatWith())
    await Promise.all(chats.map((chat, i) => chat.sendMessage({ text: `/say number ${i} is here` })))
    for (const [i, chat] of chats.entries()) expect(textOf(chat)).to.match(new RegExp(`\\|number ${i} is here$`))
  })
}
