import type { Command } from 'commander'
import type { Schema } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { addListOptions, type ListOptions, printList } from '../list.ts'
import { plainLine } from '../text/plain.ts'

export function defineTools(command: Command, cli: Cli): void {
  addListOptions(command).action((options: ListOptions) => list(options, cli))
}

async function list(options: ListOptions, cli: Cli): Promise<void> {
  const { raw } = await cli.engine()
  const { tools } = await raw.get('/tools')
  printList<Schema<'ToolInfo'>>(tools.slice(0, options.limit), options, cli, {
    id: ({ name }) => name,
    nothing: 'agents have no tools here',
    columns: [
      { title: 'NAME', value: ({ name }) => plainLine(name) },
      { title: 'INPUT', value: ({ input_schema: schema }) => plainLine(fieldsOf(schema)), canShrink: true },
      { title: 'DESCRIPTION', value: ({ description }) => plainLine(description), canShrink: true },
    ],
  })
}

/** The names of the fields; those that may be left out end with `?`. */
function fieldsOf({ properties, required }: Schema<'ToolInfo'>['input_schema']): string {
  const needed = new Set(Array.isArray(required) ? required : [])
  const names = typeof properties === 'object' && properties !== null ? Object.keys(properties) : []
  return names.map((name) => (needed.has(name) ? name : `${name}?`)).join(' ')
}
