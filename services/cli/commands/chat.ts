import { createInterface } from 'node:readline'
import type { Command } from 'commander'
import { type AgentEngine, ApiError, RunFailed, type Session } from '../../../shared/client/client.ts'
import { CHAT_HELP, type Chat, doChatCommand } from '../chat/chat-commands.ts'
import { showHistory } from '../chat/history.ts'
import type { Cli } from '../cli.ts'
import { CliError, EXIT, exitCodeOf, explain } from '../exit-codes.ts'
import { askLine } from '../follow/ask-line.ts'
import { followRun } from '../follow/follow-run.ts'
import { TypeAhead } from '../follow/type-ahead.ts'
import { isInteractive } from '../io.ts'
import { plain, plainLine } from '../text/plain.ts'
import { type ApprovalOptions, addApprovalOptions, approvalOf } from './options.ts'

type ChatOptions = ApprovalOptions & { continue?: boolean; model?: string }

export function defineChat(command: Command, cli: Cli): void {
  command
    .argument('[session]', 'the session: it is created, or continued')
    .option('-c, --continue', 'continue the session of the last message')
    .option('-m, --model <model>', 'the model')
  addApprovalOptions(command)
    .addHelpText('after', `\nIn the conversation:\n${CHAT_HELP}`)
    .action((session: string | undefined, options: ChatOptions) => talk(session, options, cli))
}

async function talk(given: string | undefined, options: ChatOptions, cli: Cli): Promise<void> {
  const client = await cli.engine()
  const id = given ?? (options.continue ? await lastSession(client) : undefined)
  const session = await client.sessions.open(id)
  const { output, io, exitWith } = cli
  const { style } = output
  const ahead = new TypeAhead(io, style)
  const begun = { model: options.model, after: undefined, attached: [], hasEvents: false, isOver: false }
  const state: Chat = { session, client, cli, ahead, ...begun }
  if (!options.json) {
    if (id !== undefined) await showHistory(session, output)
    output.err(`${style.dim(`${plainLine(session.id)}${style.symbols.sep}/help lists the commands`)}\n`)
  }
  for await (const typed of isInteractive(io) ? typedLines(state) : pipedLines(cli)) {
    const line = typed.replace(/^\/queue\s+/, '')
    if (line.trim() === '') continue
    if (line.startsWith('/') && (await doChatCommand(line, state))) {
      if (state.isOver) break
      continue
    }
    await say(line, options, state)
  }
  if (!isInteractive(io)) return
  output.err(`ae chat ${plainLine(state.session.id)}\n`)
  exitWith(EXIT.ok)
}

/** Sends one message and shows the answer. A failed run does not end the conversation. */
async function say(prompt: string, options: ChatOptions, chat: Chat): Promise<void> {
  const { session, client, ahead, hasEvents, cli } = chat
  const { io, output, exitWith } = cli
  const start = (follow: object) => session.send({ prompt, ...placeOf(chat) }, follow)
  const isJson = Boolean(options.json) || hasEvents
  const steer = (runId: string, text: string) => client.runs.steer(runId, text)
  const typed = isInteractive(io) && !isJson ? { ahead: { keys: ahead, steer } } : {}
  try {
    exitWith(await followRun({ io, output, approval: approvalOf(options), isJson, start, ...typed }))
    Object.assign(chat, SENT)
  } catch (cause) {
    if (cause instanceof RunFailed) Object.assign(chat, SENT) // The message was accepted.
    ahead.hold()
    if (!isInteractive(io) || !(cause instanceof RunFailed || cause instanceof ApiError)) throw cause
    const { message, hints } = explain(cause, '')
    output.err(
      [
        `${output.style.red(output.style.symbols.bad)} ${plain(message)}`,
        ...hints.map((hint) => `  ${plain(hint)}`),
        '',
      ].join('\n'),
    )
    if (exitCodeOf(cause) === EXIT.notFound) throw new CliError(EXIT.notFound, `the session ${session.id} is gone`)
  }
}

/** Resets the options that apply to one message only, after this was sent. */
const SENT = { after: undefined, attached: [] } as const

const placeOf = ({ model, after, attached }: Chat) => ({
  ...(model !== undefined && { model }),
  ...(after !== undefined && { after }),
  ...(attached.length > 0 && { attachments: attached.map(({ file_id }) => ({ file_id })) }),
})

async function* typedLines(chat: Chat): AsyncGenerator<string> {
  const { io, output } = chat.cli
  const question = `${output.style.symbols.prompt} `
  const history: string[] = []
  while (!chat.isOver) {
    const waiting = chat.ahead.queued.shift()
    if (waiting !== undefined) output.err(`${question}${plainLine(waiting)}\n`)
    const given = waiting === undefined ? chat.ahead.takeBack() : ''
    const line = waiting ?? (await askLine(io, { question, given, history: [...history] }))
    if (line === undefined) return
    if (line.trim() !== '') history.unshift(line)
    yield line
  }
}

async function* pipedLines({ io }: Cli): AsyncGenerator<string> {
  yield* createInterface({ input: io.stdin, crlfDelay: Number.POSITIVE_INFINITY })
}

async function lastSession(client: AgentEngine): Promise<Session['id']> {
  const sessions = await client.sessions.list({ limit: 100 }).all(1_000)
  const timeOf = (each: (typeof sessions)[number]) => Date.parse(each.last_message_at ?? each.created_at)
  const [last] = sessions.toSorted((a, b) => timeOf(b) - timeOf(a))
  if (last) return last.session_id
  throw new CliError(EXIT.notFound, 'there is no session to continue', '`ae chat` begins one.')
}
