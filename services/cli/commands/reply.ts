import { type Command, Option } from 'commander'
import type { AgentEngine, PermissionReply } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { CliError, EXIT, usageError } from '../exit-codes.ts'
import { callText } from '../follow/call-line.ts'
import { type Edited, editInput, readObject } from '../follow/edit-input.ts'
import { previewLines } from '../follow/preview.ts'
import { isInteractive } from '../io.ts'
import { resolveId } from '../resolve-id.ts'

type AllowOptions = { session?: boolean; edit?: boolean; input?: string; reason?: string }

const ID = 'the request, or the beginning or end of its id'

export function defineAllow(command: Command, cli: Cli): void {
  command
    .argument('<id>', ID)
    .option('--session', 'allow the tool for the rest of the session')
    .addOption(new Option('--edit', 'change the input first, in EDITOR or on a line').conflicts('input'))
    .option('--input <json>', 'let it run with this input')
    .option('-r, --reason <text>', 'shown to the model')
    .action((id: string, options: AllowOptions) => allow(id, options, cli))
}

export function defineDeny(command: Command, cli: Cli): void {
  command
    .argument('<id>', ID)
    .option('-r, --reason <text>', 'shown to the model')
    .action(async (id: string, { reason }: { reason?: string }) => {
      const client = await cli.engine()
      const pending = await findPending(client, id)
      await client.permissions.reply(pending.session_id, pending.id, { allow: false, ...(reason && { reason }) })
      cli.output.out(`${pending.id} denied\n`)
    })
}

async function allow(id: string, options: AllowOptions, cli: Cli): Promise<void> {
  const client = await cli.engine()
  const pending = await findPending(client, id)
  const call = { toolName: pending.tool_name, input: pending.input }
  cli.output.err(`${[callText(call), ...previewLines(pending)].join('\n  ')}\n`)
  const expiresAt = client.localTime(pending.expires_at)
  const input = await changedInput({ input: pending.input, expiresAt }, options, cli)
  const reply: PermissionReply = {
    allow: true,
    ...(options.session && { remember: 'session' }),
    ...(options.reason && { reason: options.reason }),
    ...(input && { input }),
  }
  await client.permissions.reply(pending.session_id, pending.id, reply)
  cli.output.out(`${pending.id} allowed\n`)
}

/** The path of a reply needs the session, which is not in the request's id, so it comes from the list of pending requests. */
export async function findPending(client: AgentEngine, text: string) {
  const { id } = await resolveId(client, text, ['permission'])
  for await (const pending of client.permissions.list()) if (pending.id === id) return pending
  throw new CliError(
    EXIT.notFound,
    `${id} does not wait for an answer`,
    '`ae approvals --decided` lists those that were decided.',
  )
}

async function changedInput(
  pending: Pick<Edited, 'input' | 'expiresAt'>,
  { edit, input: text }: AllowOptions,
  { io }: Cli,
): Promise<Record<string, unknown> | undefined> {
  if (text !== undefined) return asInput(() => readObject(text))
  if (!edit) return undefined
  if (!isInteractive(io)) throw usageError('--edit needs a terminal', 'Give the input with --input JSON.')
  const { signal } = new AbortController()
  const changed = await asInput(() => editInput(io, { ...pending, signal }))
  if (changed === undefined) throw new CliError(EXIT.cancelled, 'the input was left, and nothing is allowed')
  return changed === pending.input ? undefined : changed
}

async function asInput<T>(read: () => T | Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (cause) {
    if (cause instanceof SyntaxError) throw usageError(`the input is not a JSON object: ${cause.message}`)
    throw cause
  }
}
