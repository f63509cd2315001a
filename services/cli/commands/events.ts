import { type Command, Option } from 'commander'
import type { TenantEvent, TenantEventName } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { abortOnInterrupt } from '../io.ts'
import { plainJson, plainLine } from '../text/plain.ts'
import { wholeNumber } from './options.ts'

const TYPES = [
  ...['permission.requested', 'permission.resolved', 'tool_call.requested', 'tool_call.resolved', 'run.started'],
  ...['run.waiting', 'run.ended', 'plan.queued'],
  ...['plan.step', 'plan.ended', 'flow.ended', 'batch.ended', 'flow.changed', 'config.changed', 'budget.threshold'],
] as TenantEventName[]

type EventsOptions = { types?: TenantEventName[]; after?: string; limit?: number; json?: boolean }

export function defineEvents(command: Command, cli: Cli): void {
  command
    .addOption(new Option('--types <types...>', 'only these').choices(TYPES))
    .option('--after <id>', 'begin behind the event with this id, as far as it is kept')
    .option('-n, --limit <n>', 'end after this many events', wholeNumber)
    .option('--json', 'print one event a line')
    .action((options: EventsOptions) => events(options, cli))
}

/** Prints each event when it arrives, until Ctrl-C. */
async function events({ types, after, limit, json }: EventsOptions, { io, engine, output }: Cli): Promise<void> {
  const { signal, release } = abortOnInterrupt(io)
  const client = await engine()
  if (!json) output.err(`${output.style.dim('waiting for events (Ctrl-C ends)')}\n`)
  let count = 0
  try {
    for await (const event of client.events({ signal, after, ...(types && { types }) })) {
      output.out(json ? `${plainJson(event)}\n` : lineOf(event))
      if (++count === limit) return
    }
  } catch (cause) {
    if (!signal.aborted) throw cause
  } finally {
    release()
  }
}

const lineOf = ({ event, data }: TenantEvent): string => `${plainLine(event).padEnd(20)}  ${plainJson(data)}\n`
