import type { Command } from 'commander'
import type { AgentEngine } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { addOutputOption, type OutputOptions } from '../list.ts'
import { type Found, type Kind, resolveId } from '../resolve-id.ts'
import { fieldLines } from '../text/fields.ts'
import { plainJson } from '../text/plain.ts'

const KINDS: readonly Kind[] = ['run', 'plan', 'permission', 'dispatch', 'session', 'batch']

export function defineShow(command: Command, cli: Cli): void {
  addOutputOption(command, ['table', 'json', 'yaml'])
    .argument(
      '<id>',
      'a run, plan, permission request, dispatch (trace_…), session or batch, or the beginning or end of its id',
    )
    .option('--json', 'the same as -o json: as the API shows it')
    .action((id: string, options: ShowOptions) => show(id, options, cli))
}

type ShowOptions = OutputOptions & { json?: boolean }

async function show(text: string, { json, output: form, toYaml = String }: ShowOptions, { engine, output }: Cli) {
  const client = await engine()
  const thing = await read(client, await resolveId(client, text, KINDS))
  if (json || form === 'json') return output.out(`${plainJson(thing, 2)}\n`)
  output.out(form === 'yaml' ? toYaml(thing) : fieldLines(thing))
}

async function read(client: AgentEngine, { kind, id }: Found): Promise<object> {
  switch (kind) {
    case 'run':
      return client.runs.get(id)
    case 'plan':
      return client.plans.of(id).get()
    case 'dispatch':
      return client.dispatches.get(id)
    case 'session':
      return (await client.sessions.open(id)).get()
    case 'permission':
      return client.permissions.get(id)
    case 'batch':
      return client.raw.get('/batches/{id}', { path: { id } })
  }
}
