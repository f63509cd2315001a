import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Command, Option } from 'commander'
import type { AgentEngine, PermissionAsk, Schema } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { askPerson } from '../follow/ask-person.ts'
import { callText, subjectOf } from '../follow/call-line.ts'
import { abortOnInterrupt } from '../follow/interrupt.ts'
import { isInteractive } from '../io.ts'
import { addListOptions, type ListOptions, printList } from '../list.ts'
import type { Output } from '../output.ts'
import { age, countdown } from '../text/figures.ts'
import { plainJson, plainLine } from '../text/plain.ts'

type Pending = Schema<'PendingPermission'>
type ApprovalsOptions = ListOptions & { decided?: boolean; remembered?: boolean }

export function defineApprovals(command: Command, cli: Cli): void {
  addListOptions(command)
    .addOption(new Option('--decided', 'those that were decided, newest first').conflicts('remembered'))
    .option('--remembered', 'the tools that are allowed for the rest of a session')
    .action((options: ApprovalsOptions) => list(options, cli))
  command
    .command('watch')
    .description('show each request as it comes, with a bell, and ask for an answer on a terminal')
    .option('--json', 'print one request a line')
    .action((options: { json?: boolean }) => watch(options, cli))
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
      { title: 'ID', value: ({ id }) => id },
      { title: 'TOOL', value: ({ tool_name: tool }) => plainLine(tool) },
      { title: 'CALL', value: ({ input }) => subjectOf(input), canShrink: true },
      { title: 'SESSION', value: ({ session_id: session }) => session, canShrink: true },
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
      { title: 'ID', value: ({ id }) => id },
      { title: 'TOOL', value: ({ tool_name: tool }) => plainLine(tool) },
      { title: 'ANSWER', value: ({ allow, edited }) => (allow ? (edited ? 'allowed, edited' : 'allowed') : 'denied') },
      { title: 'BY', value: ({ by, how }) => plainLine(by ?? how) },
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

async function watch({ json }: { json?: boolean }, cli: Cli): Promise<void> {
  const { io, output, engine } = cli
  const { signal, release } = abortOnInterrupt(io)
  const client: AgentEngine = await engine()
  if (!json) output.err(`${output.style.dim('waiting for requests (Ctrl-C ends)')}\n`)
  try {
    for await (const ask of client.permissions.watch({ signal })) {
      if (json) output.out(`${plainJson(ask.request)}\n`)
      else if (isInteractive(io)) await answer(ask, cli)
      else output.out(`${ask.id}  ${callText(ask)}\n`)
    }
  } catch (cause) {
    if (!signal.aborted) throw cause
  } finally {
    release()
  }
}

const RESOLUTION_MS = 2_000

async function answer(ask: PermissionAsk, { io, output }: Cli): Promise<void> {
  if (ask.signal.aborted) return
  output.err('\u0007')
  await askPerson(ask, { io, output, screen: screenOn(output) })
  // The server tells everyone who has answered, also the one who has.
  if (!ask.signal.aborted) await Promise.race([once(ask.signal, 'abort'), sleep(RESOLUTION_MS)])
  const { how, allow } = ask.resolution ?? {}
  if (how === undefined) return
  output.err(`  ${ask.id} ${allow ? 'allowed' : 'denied'}${how === 'reply' ? '' : ` (${how})`}\n`)
}

/** Nothing but the question is on the screen, so its countdown is drawn on one line. */
function screenOn(output: Output) {
  let ticker: NodeJS.Timeout | undefined
  return {
    print: (...lines: string[]) => output.err(`${lines.join('\n')}\n`),
    clear: () => output.err('\r\u001b[K'),
    setPrompt(prompt: (() => string) | undefined) {
      clearInterval(ticker)
      if (!prompt) return
      const draw = () => output.err(`\r${prompt()}\u001b[K`)
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
