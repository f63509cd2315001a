import { type Command, Option } from 'commander'
import type { Cli } from './cli.ts'
import { wholeNumber } from './commands/options.ts'
import { plainJson } from './text/plain.ts'
import { type Column, tableLines } from './text/table.ts'

export type ListOptions = { output: 'table' | 'json' | 'ids'; limit: number }

export type ListShape<Row> = {
  columns: readonly Column<Row>[]
  id: (row: Row) => string
  /** The line on stderr when the list is empty. */
  nothing: string
}

const USUAL_LIMIT = 30

export function addListOptions(command: Command): Command {
  return command
    .addOption(
      new Option('-o, --output <form>', 'how it is printed').choices(['table', 'json', 'ids']).default('table'),
    )
    .option('-n, --limit <n>', 'the most rows', wholeNumber, USUAL_LIMIT)
}

/** Prints a list: as a table, which a terminal's width cuts, as JSON, or the ids only. */
export function printList<Row>(
  rows: readonly Row[],
  { output: form }: Pick<ListOptions, 'output'>,
  { output, io }: Pick<Cli, 'output' | 'io'>,
  { columns, id, nothing }: ListShape<Row>,
): void {
  if (form === 'json') return output.out(`${plainJson(rows, 2)}\n`)
  if (form === 'ids') return output.out(rows.map((row) => `${id(row)}\n`).join(''))
  if (rows.length === 0) return output.err(`${nothing}\n`)
  const [head = '', ...lines] = tableLines(rows, columns, io.stdout.isTTY ? output.columns() : undefined)
  output.out(`${[io.stdout.isTTY ? output.style.dim(head) : head, ...lines].join('\n')}\n`)
}
