import type { Command } from 'commander'
import type { AgentEngine } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { type Found, type Kind, resolveId } from '../resolve-id.ts'
import { fieldLines } from '../text/fields.ts'
import { plainJson } from '../text/plain.ts'

const KINDS: readonly Kind[] = ['run', 'plan', 'permission', 'dispatch', 'session']

export function defineShow(command: Command, cli: Cli): void {
  command
    .argument(
      '<id>',
      'a run, plan, permission request, dispatch (trace_…) or session, or the beginning or end of its id',
    )
    .option('--json', 'print it as the API shows it')
    .action((id: string, options: { json?: boolean }) => show(id, options, cli))
}

async function show(text: string, { json }: { json?: boolean }, { engine, output }: Cli): Promise<void> {
  const client = await engine()
  const thing = await read(client, await resolveId(client, text, KINDS))
  output.out(json ? `${plainJson(thing, 2)}\n` : fieldLines(thing))
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
  }
}
