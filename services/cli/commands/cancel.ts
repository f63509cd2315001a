import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { resolveId } from '../resolve-id.ts'

export function defineCancel(command: Command, cli: Cli): void {
  command
    .argument('<ids...>', 'runs, plans or batches, or the beginnings or ends of their ids')
    .action((ids: string[]) => cancel(ids, cli))
}

export function defineSteer(command: Command, cli: Cli): void {
  command
    .argument('<run>', 'the run, or the beginning or end of its id')
    .argument('<text...>', 'what its model reads at its next call')
    .action(async (run: string, words: string[]) => {
      const client = await cli.engine()
      const { id } = await resolveId(client, run, ['run'])
      await client.runs.steer(id, words.join(' '))
      cli.output.out(`${id} told\n`)
    })
}

/** All ids are resolved before anything is ended. */
async function cancel(texts: readonly string[], { output, engine }: Cli): Promise<void> {
  const client = await engine()
  const found = await Promise.all(texts.map((text) => resolveId(client, text, ['run', 'plan', 'batch'])))
  for (const { kind, id } of found) {
    if (kind === 'plan') await client.plans.of(id).cancel()
    else if (kind === 'batch') await client.raw.post('/batches/{id}/cancel', { path: { id } })
    else await client.runs.cancel(id)
    output.out(`${id} cancelled\n`)
  }
}
