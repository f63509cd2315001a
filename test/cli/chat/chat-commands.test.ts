import { expect } from 'chai'
import { CHAT_HELP, type Chat, doChatCommand } from '../../../services/cli/chat/chat-commands.ts'
import { cliOf } from '../outputs.ts'

describe('services/cli/chat/chat-commands', () => {
  function chatOf({ active = null as string | null } = {}) {
    const cancelled: string[] = []
    const usage = { input_tokens: 1_200, output_tokens: 30, cost_usd: 0.5 }
    const client = {
      runs: { cancel: async (id: string) => void cancelled.push(id) },
      raw: { get: async () => ({ tools: [{ name: 'Read', description: `reads\u001b[31m ${'a file '.repeat(20)}` }] }) },
    }
    const { cli, written } = cliOf(client)
    const chat = {
      ...{ cli, client, model: undefined, hasEvents: false, isOver: false },
      session: { get: async () => ({ active_run_id: active, message_count: 4, usage }) },
    } as unknown as Chat
    return { chat, cancelled, written, say: (line: string) => doChatCommand(line, chat) }
  }

  it('a line that is no command is for the model, also one that begins with a slash', async () => {
    const { say, written } = chatOf()
    for (const line of ['hello', '/etc/hosts is a file', '/ is the root', ' /quti', 'say /quit', '/say hello', ''])
      expect(await say(line)).to.equal(false)
    expect(written.err).to.equal('')
  })

  it('a word behind a slash that is no command is not sent, and the list of commands is named', async () => {
    for (const line of ['/quti', '/constructor', '/modle m2', '/clear-all now']) {
      const { say, written } = chatOf()
      expect(await say(line), line).to.equal(true)
      expect(written.err).to.match(
        new RegExp(`^  there is no command ${line.split(' ')[0]}, and nothing was sent: /help`),
      )
    }
  })

  it('/model chooses the model of the next messages, and without a name the server chooses', async () => {
    const { chat, say } = chatOf()
    expect(await say('/model  m2 ')).to.equal(true)
    expect(chat.model).to.equal('m2')
    await say('/model')
    expect(chat.model).to.equal(undefined)
  })

  it('/stop cancels the run that answers, wherever it was started', async () => {
    const idle = chatOf()
    await idle.say('/stop')
    expect([idle.cancelled, idle.written.err]).to.deep.equal([[], '  nothing runs\n'])
    const busy = chatOf({ active: 'run_1' })
    await busy.say('/stop')
    expect([busy.cancelled, busy.written.err]).to.deep.equal([['run_1'], '  run_1 cancelled\n'])
  })

  it('/cost says what the session has used, /events switches, /quit leaves', async () => {
    const { chat, say, written } = chatOf()
    await say('/cost')
    expect(written.err).to.match(/4 messages · 1\.2K in · 30 out · \$0\.500/)
    await say('/events')
    expect(chat.hasEvents).to.equal(true)
    await say('/events')
    expect(chat.hasEvents).to.equal(false)
    await say('/quit')
    expect(chat.isOver).to.equal(true)
  })

  it('/tools shows a line for each tool, without escape sequences, and /help all commands', async () => {
    const { say, written } = chatOf()
    await say('/tools')
    expect(written.err)
      .to.match(/^ {2}Read reads.*…\n$/)
      .and.not.include('\u001b')
    await say('/help')
    expect(written.err).to.include(CHAT_HELP).and.include('/quit')
  })
})
