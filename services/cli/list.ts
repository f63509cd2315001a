import { type Command, Option } from 'commander'
import type { Cli } from './cli.ts'
import { wholeNumber } from './commands/options.ts'
import { plain, plainJson, plainLine } from './text/plain.ts'
import { type Column, tableLines } from './text/table.ts'

/** How a list or a thing is printed. `toYaml` is set only for `yaml`, because its library is loaded only then. */
export type OutputOptions = { output: 'table' | 'json' | 'jsonl' | 'yaml' | 'ids'; toYaml?: (value: unknown) => string }

export type ListOptions = OutputOptions & { limit: number }

export type ListShape<Row> = {
  columns: readonly Column<Row>[]
  id: (row: Row) => string
  /** The line on stderr when the list is empty. */
  nothing: string
}

const USUAL_LIMIT = 30

export function addListOptions(command: Command): Command {
  return addOutputOption(command, ['table', 'json', 'jsonl', 'yaml', 'ids']).option(
    '-n, --limit <n>',
    'the most rows',
    wholeNumber,
    USUAL_LIMIT,
  )
}

export const addOutputOption = (command: Command, forms: readonly OutputOptions['output'][]): Command =>
  command
    .addOption(new Option('-o, --output <form>', 'how it is printed').choices(forms).default('table'))
    .hook('preAction', async (_, named) => {
      if (named.opts()['output'] !== 'yaml') return
      const { stringify } = await import('yaml')
      named.setOptionValue('toYaml', (value: unknown) =>
        plain(stringify(value, { lineWidth: 0, aliasDuplicateObjects: false })),
      )
    })

/** Prints a list: as a table that fits the terminal, as JSON, as JSON with one row per line, as YAML, or the ids only. */
export function printList<Row>(
  rows: readonly Row[],
  { output: form, toYaml = String }: OutputOptions,
  { output, io }: Pick<Cli, 'output' | 'io'>,
  { columns, id, nothing }: ListShape<Row>,
): void {
  if (form === 'json') return output.out(`${plainJson(rows, 2)}\n`)
  if (form === 'jsonl') return output.out(rows.map((row) => `${plainJson(row)}\n`).join(''))
  if (form === 'yaml') return output.out(toYaml(rows))
  if (form === 'ids')
    return output.out(rows.map((row) => `${io.stdout.isTTY ? plainLine(id(row)) : id(row)}\n`).join(''))
  if (rows.length === 0) return output.err(`${nothing}\n`)
  const [head = '', ...lines] = tableLines(rows, columns, io.stdout.isTTY ? output.columns() : undefined)
  output.out(`${[io.stdout.isTTY ? output.style.dim(head) : head, ...lines].join('\n')}\n`)
}
