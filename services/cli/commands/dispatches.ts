import type { Command } from 'commander'
import type { Schema } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { CliError, EXIT } from '../exit-codes.ts'
import { addListOptions, type ListOptions, printList } from '../list.ts'
import { resolveId } from '../resolve-id.ts'
import { fieldLines } from '../text/fields.ts'
import { age, dollars, duration, tokens } from '../text/figures.ts'
import { plainJson } from '../text/plain.ts'
import { sinceOf } from './options.ts'

type Filters = ListOptions & Record<'flow' | 'status' | 'since' | 'query', string | undefined>

export function defineDispatches(command: Command, cli: Cli): void {
  addListOptions(command.command('ls').description('the runs of flows, newest first'))
    .option('--flow <name>', 'of a flow')
    .option('--status <status>', 'such as ok, error or rejected')
    .option('--since <time>', 'since a time, or an age such as 7d')
    .option('-q, --query <text>', 'with a text in the flow, the error, the input or the output')
    .action((options: Filters) => list(options, cli))
  command
    .command('show <id>')
    .description('all that is kept of a run of a flow')
    .option('--json', 'print it as JSON')
    .action(async (text: string, { json }: { json?: boolean }) => {
      const client = await cli.engine()
      const { id } = await resolveId(client, text, ['dispatch'])
      const dispatch = await client.dispatches.get(id)
      cli.output.out(json ? `${plainJson(dispatch, 2)}\n` : fieldLines(dispatch))
    })
  command
    .command('replay <id>')
    .description('run the flow again, in the same version and with the same input')
    .action((id: string) => replay(id, cli))
}

async function list({ flow, status, since, query: q, ...options }: Filters, cli: Cli): Promise<void> {
  const { dispatches } = await cli.engine()
  const now = Date.now()
  const query = { flow, status, q, since: sinceOf(since), limit: Math.min(options.limit, 100) }
  printList<Schema<'DispatchSummary'>>(await dispatches.list(query).all(options.limit), options, cli, {
    id: ({ trace_id: id }) => id,
    nothing: 'there are no such dispatches',
    columns: [
      { title: 'ID', value: ({ trace_id: id }) => id, isId: true },
      { title: 'FLOW', value: (each) => `${each.flow.name} ${each.flow.version}`, canShrink: true },
      { title: 'STATE', value: ({ status: state }) => state },
      { title: 'MODEL', value: ({ model }) => model, canShrink: true, isMinor: true },
      {
        title: 'TOKENS',
        value: (each) => tokens(each.input_tokens + each.output_tokens),
        isNumber: true,
        isMinor: true,
      },
      { title: 'COST', value: ({ cost_usd: cost }) => dollars(cost), isNumber: true },
      {
        title: 'TOOK',
        value: ({ duration_ms: ms }) => (ms === null ? '' : duration(ms)),
        isNumber: true,
        isMinor: true,
      },
      { title: 'AGO', value: ({ started_at: at }) => age(at, now), isNumber: true },
    ],
  })
}

async function replay(text: string, { engine, output, exitWith }: Cli): Promise<void> {
  const client = await engine()
  const { id } = await resolveId(client, text, ['dispatch'])
  const { flow, input, provider_instance: instance } = await client.dispatches.get(id)
  if (input === null)
    throw new CliError(EXIT.notFound, `the input of ${id} is not kept`, 'It is while audit.store_payloads is on.')
  const result = await client.flows.run(flow.name, { instance, input, version: flow.version })
  output.err(`${result.trace_id}\n`)
  output.out(`${plainJson(result.ok ? result.output : { problems: result.problems }, 2)}\n`)
  if (!result.ok) exitWith(EXIT.failed)
}
