import type { Schema } from '../../../shared/client/client.ts'
import type { TypeAhead } from '../follow/type-ahead.ts'
import { bytes, dollars, tokens } from '../text/figures.ts'
import { plainLine } from '../text/plain.ts'
import { cut } from '../text/width.ts'
import { type Branching, goToBranch, lastOf, listBranches, undo } from './branches.ts'

/** A conversation at the command line. */
export type Chat = Branching & {
  model: string | undefined
  /** Whether the raw events are shown instead of the text. */
  hasEvents: boolean
  /** The files that go with the next message. */
  attached: readonly Schema<'File'>[]
  ahead: TypeAhead
  isOver: boolean
}

type ChatCommand = { help: string; run(argument: string, chat: Chat): void | Promise<void> }

const COMMANDS: Readonly<Record<string, ChatCommand>> = {
  model: {
    help: '/model [NAME]  the model of the next messages; without a name the server chooses',
    run(argument, chat) {
      chat.model = argument || undefined
      tell(chat, `model: ${argument || "the server's"}`)
    },
  },
  cost: {
    help: '/cost          what the session has used',
    async run(_, chat) {
      const { usage, message_count: count } = await chat.session.get()
      const { style } = chat.cli.output
      const used = [`${tokens(usage.input_tokens)} in`, `${tokens(usage.output_tokens)} out`, dollars(usage.cost_usd)]
      tell(chat, [`${count} messages`, ...used].join(style.symbols.sep))
    },
  },
  tools: {
    help: '/tools         the tools that the model may call',
    async run(_, chat) {
      const { tools } = await chat.client.raw.get('/tools')
      const { columns, style } = chat.cli.output
      for (const { name, description } of tools)
        tell(chat, cut(plainLine(`${name}  ${description}`), columns() - 3, style.symbols.cut))
    },
  },
  undo: {
    help: '/undo          have the next message take the place of the last one, whose branch stays',
    run: async (_, chat) => tell(chat, await undo(chat)),
  },
  branches: {
    help: '/branches [N]  what the conversation has split into; with a number go on there',
    async run(argument, chat) {
      const lines = argument === '' ? await listBranches(chat) : [await goToBranch(argument, chat)]
      for (const line of lines) tell(chat, line)
    },
  },
  fork: {
    help: '/fork [AT]     go on in a session of its own, from here or from the message or run AT',
    run: async (at, chat) => tell(chat, await fork(at, chat)),
  },
  attach: {
    help: '/attach [PATH] have a file go with the next message; without a path none goes',
    run: async (path, chat) => tell(chat, await attach(path, chat)),
  },
  files: {
    help: '/files         what lies in the workspace of the session',
    async run(_, chat) {
      const path = { id: chat.session.id }
      const { files, next_cursor: next } = await chat.client.raw.get('/sessions/{id}/files', { path })
      for (const file of files) tell(chat, `${plainLine(file.path)}  ${bytes(file.bytes)}`)
      const get = `ae files get ${plainLine(path.id)} FILE --path PATH writes one to the disk`
      tell(chat, files.length === 0 ? 'nothing lies there' : `${next === null ? '' : 'and more; '}${get}`)
    },
  },
  steer: {
    help: '/steer TEXT    tell the run at work, which reads it next; while it works here, Tab does',
    async run(text, chat) {
      const { active_run_id: active } = await chat.session.get()
      if (active !== null && text !== '') await chat.client.runs.steer(active, text)
      tell(chat, active === null ? 'nothing runs: send it as a message' : text === '' ? '/steer TEXT' : 'told')
    },
  },
  queue: {
    help: '/queue TEXT    have a message wait for the end of the run; while one works here, Enter does',
    run: (_, chat) => tell(chat, '/queue TEXT'),
  },
  stop: {
    help: '/stop          end the answer that runs, where it was started elsewhere; here Ctrl-C does',
    async run(_, chat) {
      const { active_run_id: active } = await chat.session.get()
      if (active !== null) await chat.client.runs.cancel(active)
      tell(chat, active === null ? 'nothing runs' : `${active} cancelled`)
    },
  },
  events: {
    help: '/events        show the events of the next answers, or their text again',
    run(_, chat) {
      chat.hasEvents = !chat.hasEvents
      tell(chat, chat.hasEvents ? 'events are shown' : 'text is shown')
    },
  },
  help: { help: '/help          this list', run: (_, chat) => tell(chat, CHAT_HELP) },
  quit: {
    help: '/quit          leave; the session stays',
    run(_, chat) {
      chat.isOver = true
    },
  },
}

export const CHAT_HELP = Object.values(COMMANDS)
  .map(({ help }) => `  ${help}`)
  .join('\n')

/** The directives of the demo model, which are messages. */
const DIRECTIVES: readonly string[] = ['say', 'think', 'tool', 'plan', 'sleep', 'fail']

/**
 * Carries out a line that is a command, or says that there is no command of this name, so that a misspelled command does not start a run.
 * Returns `false` for lines for the model: all other lines, and directives of the demo model.
 */
export async function doChatCommand(line: string, chat: Chat): Promise<boolean> {
  const [, name, argument = ''] = /^\/([\w-]+)(?:\s+(.*))?$/s.exec(line) ?? []
  if (name === undefined || DIRECTIVES.includes(name)) return false
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (command) await command.run(argument.trim(), chat)
  else
    tell(
      chat,
      `there is no command /${name}, and nothing was sent: /help lists them; with a blank in front the line is sent`,
    )
  return true
}

async function fork(at: string, chat: Chat): Promise<string> {
  const from = at || (await lastOf(chat))
  if (from === undefined) return 'nothing was said yet'
  const { session_id: id } = await chat.session.fork(from)
  chat.session = await chat.client.sessions.open(id)
  chat.after = undefined
  return `the next message goes to ${plainLine(id)}, which has a history of its own from here on`
}

async function attach(path: string, chat: Chat): Promise<string> {
  if (path === '') {
    chat.attached = []
    return 'no file goes with the next message'
  }
  const { upload } = await import('../connect/upload.ts')
  const kept = await upload(path, chat.cli).catch((cause: unknown) => (cause instanceof Error ? cause : undefined))
  if (kept === undefined || kept instanceof Error) return `not attached: ${plainLine(kept?.message ?? path)}`
  chat.attached = [...chat.attached, kept]
  return `goes with the next message: ${chat.attached.map(({ name }) => plainLine(name)).join(', ')}`
}

const tell = ({ cli: { output } }: Chat, text: string): void => output.err(`  ${output.style.dim(text)}\n`)
