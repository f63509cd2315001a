import { type Command, Option } from 'commander'
import type { Schema } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { addListOptions, type ListOptions, printList } from '../list.ts'
import { dollars, duration, tokens } from '../text/figures.ts'
import { plainLine } from '../text/plain.ts'
import { sinceOf } from './options.ts'

type UsageOptions = ListOptions & { by: string; bucket: string; since: string; until?: string }

export function defineUsage(command: Command, cli: Cli): void {
  addListOptions(command)
    .option(
      '--by <fields>',
      'model, kind, flow, customer or subject, two of them with a comma, or metadata.NAME',
      'kind',
    )
    .addOption(new Option('--bucket <size>', 'hours or days').choices(['hour', 'day']).default('day'))
    .option('--since <time>', 'from a time, or an age', '7d')
    .option('--until <time>', 'to a time, or an age')
    .action((options: UsageOptions) => usage(options, cli))
}

async function usage({ by, bucket, since, until, ...options }: UsageOptions, cli: Cli): Promise<void> {
  const engine = await cli.engine()
  const rows = await engine.usage({ by, bucket, from: sinceOf(since), to: sinceOf(until) }).all(options.limit)
  const length = bucket === 'day' ? 10 : 16
  printList<Schema<'UsageRow'>>(rows, options, cli, {
    id: (row) => `${row.bucket} ${nameOf(row)}`,
    nothing: 'nothing was used',
    columns: [
      { title: bucket.toUpperCase(), value: ({ bucket: start }) => start.slice(0, length).replace('T', ' ') },
      { title: by.toUpperCase(), value: (row) => plainLine(nameOf(row)), canShrink: true },
      { title: 'RUNS', value: ({ runs }) => String(runs), isNumber: true },
      { title: 'FAILED', value: ({ failed }) => String(failed), isNumber: true },
      { title: 'INVALID', value: ({ invalid }) => String(invalid), isNumber: true, isMinor: true },
      { title: 'IN', value: ({ input_tokens: count }) => tokens(count), isNumber: true },
      { title: 'CACHED', value: ({ cache_read_tokens: count }) => tokens(count), isNumber: true, isMinor: true },
      { title: 'WRITTEN', value: ({ cache_write_tokens: count }) => tokens(count), isNumber: true, isMinor: true },
      { title: 'OUT', value: ({ output_tokens: count }) => tokens(count), isNumber: true },
      { title: 'COST', value: ({ cost_usd: cost }) => dollars(cost), isNumber: true },
      { title: 'P50', value: ({ p50_ms: ms }) => duration(ms), isNumber: true, isMinor: true },
      { title: 'P95', value: ({ p95_ms: ms }) => duration(ms), isNumber: true, isMinor: true },
    ],
  })
}

const nameOf = ({ key, keys = [key], rest = [] }: Schema<'UsageRow'>): string =>
  keys.map((value, i) => (rest[i] ? '(other)' : (value ?? '(none)'))).join(' ')
