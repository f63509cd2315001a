import { createInterface } from 'node:readline'
import type { Command } from 'commander'
import { type AgentEngine, ApiError, RunFailed, type Session } from '../../../shared/client/client.ts'
import { CHAT_HELP, type Chat, doChatCommand } from '../chat/chat-commands.ts'
import { showHistory } from '../chat/history.ts'
import type { Cli } from '../cli.ts'
import { CliError, EXIT, exitCodeOf, explain } from '../exit-codes.ts'
import { askLine } from '../follow/ask-line.ts'
import { followRun } from '../follow/follow-run.ts'
import { isInteractive } from '../io.ts'
import { plain, plainLine } from '../text/plain.ts'
import { type ApprovalOptions, addApprovalOptions, approvalOf } from './approval-options.ts'

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
  const state: Chat = { session, client, cli, model: options.model, after: undefined, hasEvents: false, isOver: false }
  const { output, io, exitWith } = cli
  const { style } = output
  if (!options.json) {
    if (id !== undefined) await showHistory(session, output)
    output.err(`${style.dim(`${plainLine(session.id)}${style.symbols.sep}/help lists the commands`)}\n`)
  }
  for await (const line of isInteractive(io) ? typedLines(state) : pipedLines(cli)) {
    if (line.trim() === '') continue
    if (line.startsWith('/') && (await doChatCommand(line, state))) {
      if (state.isOver) break
      continue
    }
    await say(line, options, state)
  }
  if (!isInteractive(io)) return
  output.err(`ae chat ${plainLine(session.id)}\n`)
  exitWith(EXIT.ok)
}

/** One message and its answer. A run that fails leaves the conversation as it is. */
async function say(prompt: string, options: ChatOptions, chat: Chat): Promise<void> {
  const { session, model, after, hasEvents, cli } = chat
  const { io, output, exitWith } = cli
  const place = { ...(model !== undefined && { model }), ...(after !== undefined && { after }) }
  const start = (follow: object) => session.send({ prompt, ...place }, follow)
  const isJson = Boolean(options.json) || hasEvents
  try {
    exitWith(await followRun({ io, output, approval: approvalOf(options), isJson, start }))
    chat.after = undefined
  } catch (cause) {
    if (cause instanceof RunFailed) chat.after = undefined // The message was accepted.
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

async function* typedLines(chat: Chat): AsyncGenerator<string> {
  const { io, output } = chat.cli
  const history: string[] = []
  while (!chat.isOver) {
    const line = await askLine(io, { question: `${output.style.symbols.prompt} `, history: [...history] })
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
