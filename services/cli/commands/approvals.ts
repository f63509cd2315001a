import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Command, Option } from 'commander'
import type { AgentEngine, PermissionAsk, Schema } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { askPerson, readKey } from '../follow/ask-person.ts'
import { callText, subjectOf } from '../follow/call-line.ts'
import { abortOnInterrupt, type Io, isInteractive } from '../io.ts'
import { addListOptions, type ListOptions, printList } from '../list.ts'
import type { Output } from '../output.ts'
import { age, countdown } from '../text/figures.ts'
import { plainJson, plainLine } from '../text/plain.ts'
import { cut } from '../text/width.ts'
import { findPending } from './reply.ts'

type Pending = Schema<'PendingPermission'>
type ApprovalsOptions = ListOptions & { decided?: boolean; remembered?: boolean }

export function defineApprovals(command: Command, cli: Cli): void {
  addListOptions(command)
    .addOption(new Option('--decided', 'those that were decided, newest first').conflicts('remembered'))
    .option('--remembered', 'the tools that are allowed for the rest of a session')
    .action((options: ApprovalsOptions) => list(options, cli))
  command
    .command('watch [id]')
    .description('show each request as it comes, or one, with a bell, and ask for an answer on a terminal')
    .option('--json', 'print one request a line')
    .addHelpText(
      'after',
      '\nKeys: a allow, s allow for the session, e change the input first, d deny, v view all, q quit',
    )
    .action((id: string | undefined, options: WatchOptions) => watch(id, options, cli))
  command
    .command('forget <session> [tool]')
    .description('take back what was allowed for the rest of a session: one tool, or all')
    .action((session: string, tool: string | undefined) => forget(session, tool, cli))
}

async function list(options: ApprovalsOptions, cli: Cli): Promise<void> {
  const client = await cli.engine()
  const { permissions } = client
  if (options.decided) return printDecided(await permissions.decided().all(options.limit), options, cli)
  if (options.remembered) return printRemembered(await permissions.remembered().all(options.limit), options, cli)
  const now = Date.now()
  printList<Pending>(await permissions.list().all(options.limit), options, cli, {
    id: ({ id }) => id,
    nothing: 'nothing waits for an answer',
    columns: [
      { title: 'ID', value: ({ id }) => id, isId: true },
      { title: 'TOOL', value: ({ tool_name: tool }) => plainLine(tool) },
      { title: 'CALL', value: ({ input }) => subjectOf(input), canShrink: true },
      { title: 'SESSION', value: ({ session_id: session }) => session, canShrink: true, isMinor: true },
      {
        title: 'LEFT',
        value: ({ expires_at: end }) => countdown(client.localTime(end).getTime() - now),
        isNumber: true,
      },
    ],
  })
}

function printDecided(decided: Schema<'DecidedPermission'>[], options: ListOptions, cli: Cli): void {
  const now = Date.now()
  printList(decided, options, cli, {
    id: ({ id }) => id,
    nothing: 'nothing was decided',
    columns: [
      { title: 'ID', value: ({ id }) => id, isId: true },
      { title: 'TOOL', value: ({ tool_name: tool }) => plainLine(tool) },
      { title: 'ANSWER', value: ({ allow, edited }) => (allow ? (edited ? 'allowed, edited' : 'allowed') : 'denied') },
      { title: 'BY', value: ({ by, how }) => plainLine(by ?? how), isMinor: true },
      { title: 'CALL', value: ({ input }) => (input ? subjectOf(input) : ''), canShrink: true },
      { title: 'AGO', value: ({ decided_at: at }) => age(at, now), isNumber: true },
    ],
  })
}

function printRemembered(remembered: Schema<'RememberedPermission'>[], options: ListOptions, cli: Cli): void {
  const now = Date.now()
  printList(remembered, options, cli, {
    id: ({ session_id: session, tool_name: tool }) => `${session} ${tool}`,
    nothing: 'nothing is allowed for a session',
    columns: [
      { title: 'SESSION', value: ({ session_id: session }) => session },
      { title: 'TOOL', value: ({ tool_name: tool }) => plainLine(tool) },
      { title: 'AGO', value: ({ remembered_at: at }) => age(at, now), isNumber: true },
    ],
  })
}

type WatchOptions = { json?: boolean }

/** With an id, asks about this request only, until it is answered. Without an id, asks about all requests, until Ctrl-C or `q`. */
async function watch(only: string | undefined, { json }: WatchOptions, cli: Cli): Promise<void> {
  const { io, output, engine } = cli
  const { signal, release, abort } = abortOnInterrupt(io)
  const isAsking = !json && isInteractive(io)
  try {
    const client: AgentEngine = await engine()
    const id = only === undefined ? undefined : (await findPending(client, only)).id
    if (!json && !id) output.err(`${output.style.dim(`waiting for requests (${isAsking ? 'q' : 'Ctrl-C'} ends)`)}\n`)
    for await (const ask of quittable(
      client.permissions.watch({ signal }),
      isAsking ? { io, quit: abort } : undefined,
    )) {
      if (id !== undefined && ask.id !== id) continue
      if (json) output.out(`${plainJson(ask.request)}\n`)
      else if (isAsking) await answer(ask, abort, cli)
      else output.out(`${ask.id}  ${callText(ask)}\n`)
      if (id !== undefined) return
    }
  } catch (cause) {
    if (!signal.aborted) throw cause
  } finally {
    abort()
    release()
  }
}

/** The requests to ask about. While this waits for the next request, `q` quits. */
async function* quittable(
  asks: AsyncGenerator<PermissionAsk>,
  keys: { io: Io; quit: () => void } | undefined,
): AsyncGenerator<PermissionAsk> {
  for (;;) {
    const waiting = new AbortController()
    const pressed = keys && readKey(keys.io, 'q', waiting.signal).then((key) => key && keys.quit())
    try {
      const { value, done } = await asks.next()
      if (done) return
      waiting.abort()
      await pressed // Nothing else reads the terminal any more, so the question can.
      yield value
    } finally {
      waiting.abort()
    }
  }
}

const RESOLUTION_MS = 2_000

async function answer(ask: PermissionAsk, quit: () => void, { io, output }: Cli): Promise<void> {
  if (ask.signal.aborted) return
  output.err('\u0007')
  let hasQuit = false
  await askPerson(ask, { io, output, screen: screenOn(output), quit: () => (hasQuit = true) })
  if (hasQuit) return quit()
  // The server reports who has answered to all readers, including the person who answered.
  if (!ask.signal.aborted) await Promise.race([once(ask.signal, 'abort'), sleep(RESOLUTION_MS)])
  const { how, allow } = ask.resolution ?? {}
  if (how === undefined) return
  output.err(`  ${ask.id} ${allow ? 'allowed' : 'denied'}${how === 'reply' ? '' : ` (${how})`}\n`)
}

/** Only the question is on the screen, so its countdown is drawn on one line. */
function screenOn(output: Output) {
  let ticker: NodeJS.Timeout | undefined
  return {
    print: (...lines: string[]) => output.err(`${lines.join('\n')}\n`),
    clear: () => output.err('\r\u001b[K'),
    setPrompt(prompt: (() => string) | undefined) {
      clearInterval(ticker)
      if (!prompt) return
      const draw = () => output.err(`\r${cut(prompt(), output.columns() - 1)}\u001b[K`)
      draw()
      ticker = setInterval(draw, 1_000)
    },
  }
}

async function forget(session: string, tool: string | undefined, { engine, output }: Cli): Promise<void> {
  const { permissions } = await engine()
  const { count } = await permissions.forget(session, tool)
  output.out(`${count} forgotten\n`)
}
