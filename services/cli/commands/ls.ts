import { type Command, Option } from 'commander'
import type { Schema } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { addListOptions, type ListOptions, printList } from '../list.ts'
import { age, dollars, duration, tokens } from '../text/figures.ts'
import { plainLine } from '../text/plain.ts'
import { sinceOf } from './options.ts'

type Run = Schema<'Run'>
type LsOptions = ListOptions &
  Record<
    'kind' | 'status' | 'code' | 'session' | 'customer' | 'subject' | 'model' | 'flow' | 'since' | 'search',
    string
  >

export function defineLs(command: Command, cli: Cli): void {
  addListOptions(command)
    .addOption(new Option('--kind <kind>', 'runs of one kind').choices(['run', 'message', 'flow', 'step']))
    .option('--status <status>', 'running, waiting, done, failed or cancelled')
    .option('--code <code>', 'how it ended, such as provider_auth')
    .option('--session <id>', 'of a session')
    .option('--customer <id>', 'of a customer')
    .option('--subject <name>', 'of a caller')
    .option('-m, --model <model>', 'of a model')
    .option('--flow <name>', 'of a flow')
    .option('--search <text>', 'with a text in the title or a name')
    .option('--since <time>', 'since a time, or an age such as 7d, 12h or 30m')
    .action((options: LsOptions) => list(options, cli))
}

async function list(options: LsOptions, cli: Cli): Promise<void> {
  const { kind, status, code, session, customer, subject, model, flow, search, since } = options
  const filters = { kind, status, code, subject, model, flow, q: search }
  const query = { ...filters, session_id: session, customer_id: customer, since: sinceOf(since) }
  const { runs } = await cli.engine()
  const found = await runs.list({ ...query, limit: Math.min(options.limit, 100) }).all(options.limit)
  const now = Date.now()
  printList<Run>(found, options, cli, {
    id: ({ run_id: id }) => id,
    nothing: 'there are no such runs',
    columns: [
      { title: 'ID', value: ({ run_id: id }) => id, isId: true },
      { title: 'KIND', value: ({ kind: of }) => of ?? '', isMinor: true },
      { title: 'STATE', value: (run) => stateOf(run) },
      {
        title: 'WHAT',
        value: (run) => plainLine(run.title ?? run.flow ?? run.step_id ?? run.session_id ?? ''),
        canShrink: true,
      },
      {
        title: 'TOKENS',
        value: ({ input_tokens: i = 0, output_tokens: o = 0 }) => tokens(i + o),
        isNumber: true,
        isMinor: true,
      },
      { title: 'COST', value: ({ cost_usd: cost }) => (cost === undefined ? '' : dollars(cost)), isNumber: true },
      { title: 'TOOK', value: tookOf, isNumber: true, isMinor: true },
      { title: 'AGO', value: ({ started_at: at }) => age(at, now), isNumber: true },
    ],
  })
}

/** A failed run's code says more than `failed`. */
const stateOf = ({ status, code }: Run): string => (status === 'failed' && code !== undefined ? code : status)

const tookOf = ({ started_at: start, ended_at: end }: Run): string =>
  end === null ? '' : duration(Date.parse(end) - Date.parse(start))

export function defineSessions(command: Command, cli: Cli): void {
  addListOptions(command).action(async (options: ListOptions) => {
    const { sessions } = await cli.engine()
    const now = Date.now()
    printList(await sessions.list({ limit: Math.min(options.limit, 100) }).all(options.limit), options, cli, {
      id: ({ session_id: id }) => id,
      nothing: 'there are no sessions',
      columns: [
        { title: 'ID', value: ({ session_id: id }) => id },
        { title: 'TITLE', value: ({ title }) => plainLine(title ?? ''), canShrink: true },
        { title: 'MESSAGES', value: ({ message_count: count }) => String(count), isNumber: true, isMinor: true },
        { title: 'STATE', value: ({ active_run_id: active }) => (active === null ? 'idle' : 'answers') },
        { title: 'COST', value: ({ usage }) => dollars(usage.cost_usd), isNumber: true },
        { title: 'LAST', value: ({ last_message_at: at, created_at: made }) => age(at ?? made, now), isNumber: true },
      ],
    })
  })
}
