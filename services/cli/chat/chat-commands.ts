import { dollars, tokens } from '../text/figures.ts'
import { plainLine } from '../text/plain.ts'
import { cut } from '../text/width.ts'
import { type Branching, goToBranch, listBranches, undo } from './branches.ts'

/** A conversation at the command line. */
export type Chat = Branching & {
  model: string | undefined
  /** Whether the events are shown as they come, instead of the text. */
  hasEvents: boolean
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
 * Does a line that is a command, or says that there is none of this name: a slip is no message that costs a run. `false` for what is for
 * the model: any other line, and a directive of the demo model.
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

const tell = ({ cli: { output } }: Chat, text: string): void => output.err(`  ${output.style.dim(text)}\n`)
