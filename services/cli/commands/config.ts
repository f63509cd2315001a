import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { usageError } from '../exit-codes.ts'
import { readDocument } from '../read-document.ts'
import { plainJson } from '../text/plain.ts'

const PARTS = 'engine, limits, or instances/NAME, secrets/NAME or webhooks/NAME'
const LISTED = ['providers', 'instances', 'secrets', 'webhooks', 'changes']
const SINGLE = ['engine', 'limits']
const NAMED = ['instances', 'secrets', 'webhooks']

/** Values come from files or stdin, so that no secret is an argument. */
export function defineConfig(command: Command, cli: Cli): void {
  command
    .command('get [part]')
    .description(`print a part of the configuration as JSON: ${PARTS}, or a list: ${LISTED.join(', ')}`)
    .action((part = 'engine') => send('GET', pathOf(part, [...SINGLE, ...LISTED]), cli))
  command
    .command('set <part> <file>')
    .description(`replace a part from a file of JSON or YAML (- is stdin): ${PARTS}`)
    .action(async (part: string, file: string) =>
      send('PUT', pathOf(part, SINGLE), cli, await readDocument(file, cli.io)),
    )
  command
    .command('rm <part>')
    .description('delete an instance, a secret or a webhook: instances/NAME')
    .action((part: string) => send('DELETE', pathOf(part, []), cli))
  command
    .command('discover <instance>')
    .description('ask an instance for its models')
    .action((name: string) => send('POST', `${pathOf(`instances/${name}`, [])}/discover`, cli))
  command
    .command('probe <instance> <model>')
    .description('find out what a model can do')
    .action((name: string, model: string) => send('POST', `${pathOf(`instances/${name}`, [])}/probe`, cli, { model }))
}

function pathOf(part: string, single: readonly string[]): string {
  const [kind = '', name, ...more] = part.split('/')
  if (name === undefined && single.includes(kind)) return `/config/${kind}`
  if (name && more.length === 0 && NAMED.includes(kind)) return `/config/${kind}/${encodeURIComponent(name)}`
  throw usageError(`${part} is no part of the configuration here`, `The parts are ${PARTS}.`)
}

async function send(method: string, path: string, { engine, output }: Cli, body?: object): Promise<void> {
  const { raw } = await engine()
  output.out(`${plainJson(await raw.request(method, path, body ? { body } : {}), 2)}\n`)
}
