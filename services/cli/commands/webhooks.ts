import { type Command, Option } from 'commander'
import type { Schema } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { addListOptions, type ListOptions, printList } from '../list.ts'
import { readDocument } from '../read-document.ts'
import { fieldLines } from '../text/fields.ts'
import { age } from '../text/figures.ts'
import { plainJson, plainLine } from '../text/plain.ts'

type Delivery = Schema<'WebhookDelivery'>
type DeliveriesOptions = ListOptions & { status?: Delivery['status'] }

export function defineWebhooks(command: Command, cli: Cli): void {
  addListOptions(command.command('ls').description('the webhooks')).action((options: ListOptions) => list(options, cli))
  command
    .command('get <name>')
    .description('show a webhook')
    .option('--json', 'print it as JSON')
    .action(async (name: string, { json }: { json?: boolean }) => {
      const { raw } = await cli.engine()
      const webhook = await raw.get('/config/webhooks/{name}', { path: { name } })
      cli.output.out(json ? `${plainJson(webhook, 2)}\n` : fieldLines(webhook))
    })
  command
    .command('set <name> <file>')
    .description('store a webhook from a file of JSON or YAML (- is stdin) with url, events and secret')
    .action(async (name: string, file: string) => {
      const body = (await readDocument(file, cli.io)) as Schema<'WebhookRequest'>
      await (await cli.engine()).raw.put('/config/webhooks/{name}', { path: { name }, body })
      cli.output.out(`${plainLine(name)} stored\n`)
    })
  command
    .command('rm <name>')
    .description('delete a webhook, and the messages that wait for it')
    .action(async (name: string) => {
      await (await cli.engine()).raw.delete('/config/webhooks/{name}', { path: { name } })
      cli.output.out(`${plainLine(name)} deleted\n`)
    })
  defineMessages(command, cli)
}

function defineMessages(command: Command, cli: Cli): void {
  command
    .command('test <name>')
    .description('queue a test message, and print its id')
    .action(async (name: string) => {
      const { raw } = await cli.engine()
      cli.output.out(`${(await raw.post('/config/webhooks/{name}/test', { path: { name } })).id}\n`)
    })
  const deliveries = command.command('deliveries <name>').description('the messages of a webhook, newest first')
  addListOptions(deliveries)
    .addOption(new Option('--status <status>', 'only these').choices(['pending', 'delivered', 'dead']))
    .action((name: string, options: DeliveriesOptions) => listDeliveries(name, options, cli))
  command
    .command('retry <name> <delivery>')
    .description('send a message again')
    .action(async (name: string, id: string) => {
      const path = { name, id }
      const { status } = await (await cli.engine()).raw.post('/config/webhooks/{name}/deliveries/{id}/retry', { path })
      cli.output.out(`${id} ${status}\n`)
    })
}

async function list(options: ListOptions, cli: Cli): Promise<void> {
  const { raw } = await cli.engine()
  const { webhooks } = await raw.get('/config/webhooks', { query: { limit: Math.min(options.limit, 200) } })
  printList<Schema<'Webhook'>>(webhooks, options, cli, {
    id: ({ name }) => name,
    nothing: 'there are no webhooks',
    columns: [
      { title: 'NAME', value: ({ name }) => name },
      { title: 'URL', value: ({ url }) => plainLine(url), canShrink: true },
      { title: 'EVENTS', value: ({ events }) => events.join(' '), canShrink: true, isMinor: true },
      { title: 'STATE', value: stateOf },
    ],
  })
}

const stateOf = ({ enabled, resting_until: resting }: Schema<'Webhook'>): string => {
  if (!enabled) return 'disabled'
  return resting === null ? 'enabled' : `rests until ${resting}`
}

async function listDeliveries(name: string, { status, ...options }: DeliveriesOptions, cli: Cli): Promise<void> {
  const { raw } = await cli.engine()
  const query = { limit: Math.min(options.limit, 200), ...(status && { status }) }
  const { deliveries } = await raw.get('/config/webhooks/{name}/deliveries', { path: { name }, query })
  const now = Date.now()
  printList<Delivery>(deliveries, options, cli, {
    id: ({ id }) => id,
    nothing: 'there are no messages',
    columns: [
      { title: 'ID', value: ({ id }) => id },
      { title: 'TYPE', value: ({ type }) => type, isMinor: true },
      { title: 'STATUS', value: ({ status: state }) => state },
      { title: 'TRIES', value: ({ attempts }) => String(attempts), isNumber: true, isMinor: true },
      {
        title: 'ANSWER',
        value: ({ response_status: answer, error }) => plainLine(error ?? String(answer ?? '')),
        canShrink: true,
      },
      { title: 'AGO', value: ({ created_at: at }) => age(at, now), isNumber: true },
    ],
  })
}
