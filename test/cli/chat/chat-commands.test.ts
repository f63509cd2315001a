import { expect } from 'chai'
import { CHAT_HELP, type Chat, doChatCommand } from '../../../services/cli/chat/chat-commands.ts'
import { cliOf } from '../outputs.ts'

const TOOL = { name: 'Read', description: `reads\u001b[31m ${'a file '.repeat(20)}` }

const message = (id: string, parent: string | null, text: string) => ({
  ...{ id, parent_id: parent, role: text.startsWith('answer') ? 'assistant' : 'user' },
  blocks: [{ type: 'text', text }],
})

const FIRST = [message('m1', null, 'first'), message('m2', 'm1', 'answer 1')]
/** The branches of a conversation, by their last messages: the newest one is the last. */
const BRANCHES: Record<string, ReturnType<typeof message>[]> = {
  m6: [...FIRST, message('m5', 'm2', 'other\u001b[31m'), message('m6', 'm5', 'answer 3')],
  m4: [...FIRST, message('m3', 'm2', 'second'), message('m4', 'm3', 'answer 2')],
}

describe('services/cli/chat/chat-commands', () => {
  function chatOf({ active = null as string | null } = {}) {
    const cancelled: string[] = []
    const usage = { input_tokens: 1_200, output_tokens: 30, cost_usd: 0.5 }
    const told: string[] = []
    const answers: Record<string, object> = {
      '/tools': { tools: [TOOL] },
      '/sessions/{id}/files': { files: [{ path: 'out/\u001b[31ma.md', bytes: 2_048 }], next_cursor: null },
    }
    const client = {
      runs: {
        cancel: async (id: string) => void cancelled.push(id),
        steer: async (id: string, text: string) => void told.push(`${id} ${text}`),
      },
      sessions: { open: async (id: string) => ({ id }) },
      raw: { get: async (path: string) => answers[path] ?? { branches: Object.keys(BRANCHES) } },
    }
    const { cli, written } = cliOf(client)
    const chat = {
      ...{ cli, client, model: undefined, after: undefined, hasEvents: false, isOver: false },
      attached: [],
      session: {
        id: 's1',
        fork: async (at: string) => ({ session_id: `fork-of-${at}` }),
        get: async () => ({ active_run_id: active, message_count: 4, usage }),
        messages: ({ head = 'm4' } = {}) => ({ all: async () => BRANCHES[head] ?? BRANCHES['m4']?.slice(0, 2) }),
      },
    } as unknown as Chat
    return { chat, cancelled, told, written, say: (line: string) => doChatCommand(line, chat) }
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

  it('/steer tells the run that answers, wherever it was started', async () => {
    const idle = chatOf()
    await idle.say('/steer be kind')
    expect([idle.told, idle.written.err]).to.deep.equal([[], '  nothing runs: send it as a message\n'])
    const busy = chatOf({ active: 'run_1' })
    await busy.say('/steer be kind')
    expect([busy.told, busy.written.err]).to.deep.equal([['run_1 be kind'], '  told\n'])
  })

  it('/fork goes on in a session of its own, from the end of the branch that is shown or from what is named', async () => {
    for (const [line, id] of [
      ['/fork', 'fork-of-m2'],
      ['/fork run_1', 'fork-of-run_1'],
    ] as const) {
      const { chat, say, written } = chatOf()
      chat.after = 'm2'
      await say(line)
      expect(chat.session.id).to.equal(id)
      expect(chat.after).to.equal(undefined)
      expect(written.err).to.include(`the next message goes to ${id},`)
    }
  })

  it('/files lists the workspace, and /attach says which file is not there', async () => {
    const { chat, say, written } = chatOf()
    await say('/files')
    expect(written.err).to.match(/^ {2}out\/\[31ma.md {2}2 KB\n {2}ae files get s1 FILE --path PATH writes/)
    await say('/attach none.pdf')
    expect(written.err).to.match(/not attached: ENOENT.*none.pdf/)
    expect(chat.attached).to.deep.equal([])
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

  it('/undo has the next message take the place of the last one, and then of the one before, up to the first', async () => {
    const { chat, say, written } = chatOf()
    await say('/undo')
    expect(chat.after).to.equal('m2')
    await say('/undo')
    expect(chat.after).to.equal(null)
    await say('/undo')
    expect(chat.after).to.equal(null)
    expect(written.err).to.match(/place of: second\n.*place of: first\n.*no message to take back\n$/s)
  })

  it('/branches lists the branches by their last messages, and with a number shows one and goes on there', async () => {
    const { chat, say, written } = chatOf()
    await say('/branches')
    expect(written.err).to.equal('    1  other[31m\n  › 2  second\n')
    await say('/branches 1')
    expect(chat.after).to.equal('m6')
    expect(written.err).to.include('answer 3').and.not.include('\u001b[31m')
    await say('/branches 3')
    expect(chat.after).to.equal('m6')
    expect(written.err).to.match(/no branch 3: \/branches lists them\n$/)
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
