import type { Command } from 'commander'
import type { AgentEngine } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { abortOnInterrupt } from '../io.ts'
import { resolveId } from '../resolve-id.ts'
import { plain, plainJson } from '../text/plain.ts'

type LogsOptions = { raw?: boolean; json?: boolean }
type Event = { id: number; event: string; data: object }

export function defineLogs(command: Command, cli: Cli): void {
  command
    .argument('<id>', 'a run or a plan, or the beginning or end of its id')
    .option('--raw', 'with the pieces of text as they came, too')
    .option('--json', 'print one event a line')
    .action((id: string, options: LogsOptions) => logs(id, options, cli))
}

/** The past events, and, while the run continues, the new ones. */
async function logs(text: string, { raw, json }: LogsOptions, { io, engine, output }: Cli): Promise<void> {
  const client = await engine()
  const { kind, id } = await resolveId(client, text, ['run', 'plan'])
  const { signal, release } = abortOnInterrupt(io)
  try {
    for await (const event of kind === 'plan' ? client.plans.of(id).events({ signal }) : eventsOf(client, id, signal)) {
      if (!raw && event.event.endsWith('_delta')) continue
      output.out(
        json
          ? `${plainJson(event)}\n`
          : `${String(event.id).padStart(5)}  ${event.event.padEnd(18)} ${textOf(event)}\n`,
      )
    }
  } catch (cause) {
    if (!signal.aborted) throw cause
  } finally {
    release()
  }
}

/** The end of a run that has failed is an event like the others here. */
async function* eventsOf(client: AgentEngine, id: string, signal: AbortSignal): AsyncGenerator<Event> {
  const run = client.runs.resume(id, { signal })
  let last = ''
  try {
    for await (const event of run) {
      last = event.event
      yield event
    }
  } catch (cause) {
    if (last !== 'error') throw cause
  }
}

function textOf({ data }: Event): string {
  const { text } = data as { text?: unknown }
  return typeof text === 'string' ? plain(text).replaceAll('\n', `\n${' '.repeat(26)}`) : plainJson(data)
}
