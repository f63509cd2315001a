import type { Command } from 'commander'
import type { Schema } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { EXIT } from '../exit-codes.ts'
import { followPlan } from '../follow/follow-plan.ts'
import { addListOptions, type ListOptions, printList } from '../list.ts'
import { readDocument } from '../read-document.ts'
import { resolveId } from '../resolve-id.ts'
import { age, dollars } from '../text/figures.ts'
import { plainLine } from '../text/plain.ts'

type SubmitOptions = { watch?: boolean; key?: string; check?: boolean; json?: boolean }
type Plan = Schema<'PlanSummary'>

export function definePlans(command: Command, cli: Cli): void {
  command
    .command('submit <file>')
    .description('submit a plan from a file of JSON or YAML (- is stdin), and print its id')
    .option('-w, --watch', 'follow it')
    .option('--key <key>', 'the same key submits one plan')
    .option('--check', 'only say what is wrong with it, and its waves')
    .option('--json', 'with --watch: print its progress as JSON')
    .action((file: string, options: SubmitOptions) => submit(file, options, cli))
  command
    .command('watch <id>')
    .description('follow a plan until it ends')
    .option('--json', 'print its progress as JSON')
    .action((id: string, options: { json?: boolean }) => watch(id, options, cli))
  addListOptions(command.command('ls').description('the plans, newest first'))
    .option('--status <status>', 'queued, running, done, failed or cancelled')
    .action((options: ListOptions & { status?: string }) => list(options, cli))
  command
    .command('retry <id>')
    .description('submit what is left of a plan that has ended, and print the new id')
    .option('-w, --watch', 'follow it')
    .action((id: string, options: SubmitOptions) => retry(id, options, cli))
  command
    .command('cancel <id>')
    .description('end a plan')
    .action(async (text: string) => {
      const { client, id } = await find(text, cli)
      await client.plans.of(id).cancel()
      cli.output.out(`${id} cancelled\n`)
    })
}

async function find(text: string, { engine }: Cli) {
  const client = await engine()
  const { id } = await resolveId(client, text, ['plan'])
  return { client, id }
}

async function submit(file: string, options: SubmitOptions, cli: Cli): Promise<void> {
  const spec = (await readDocument(file, cli.io)) as Schema<'PlanRequest'>
  const client = await cli.engine()
  if (options.check) return printCheck(await client.plans.check(spec), cli)
  const plan = await client.plans.submit(spec, { idempotencyKey: options.key })
  if (!options.watch) return cli.output.out(`${plan.id}\n`)
  cli.output.err(`${plan.id}\n`)
  cli.exitWith(await followPlan(plan, { ...cli, isJson: Boolean(options.json) }))
}

function printCheck({ problems, waves }: Schema<'PlanCheck'>, { output, exitWith }: Cli): void {
  for (const { param, message } of problems) output.err(`${plainLine(`${param}: ${message}`)}\n`)
  for (const [i, wave] of waves.entries()) output.out(`wave ${i + 1}  ${plainLine(wave.join(' '))}\n`)
  exitWith(problems.length === 0 ? EXIT.ok : EXIT.usage)
}

async function watch(text: string, { json }: { json?: boolean }, cli: Cli): Promise<void> {
  const { client, id } = await find(text, cli)
  cli.exitWith(await followPlan(client.plans.of(id), { ...cli, isJson: Boolean(json) }))
}

async function list(options: ListOptions & { status?: string }, cli: Cli): Promise<void> {
  const { plans } = await cli.engine()
  const now = Date.now()
  const query = { status: options.status, limit: Math.min(options.limit, 100) }
  printList<Plan>(await plans.list(query).all(options.limit), options, cli, {
    id: ({ id }) => id,
    nothing: 'there are no such plans',
    columns: [
      { title: 'ID', value: ({ id }) => id, isId: true },
      { title: 'TITLE', value: ({ title }) => plainLine(title ?? ''), canShrink: true },
      { title: 'STATE', value: ({ status }) => status },
      { title: 'STEPS', value: stepsOf },
      { title: 'COST', value: ({ usage }) => dollars(usage.cost_usd), isNumber: true, isMinor: true },
      { title: 'AGO', value: ({ created_at: at }) => age(at, now), isNumber: true },
    ],
  })
}

function stepsOf({ step_counts: { done, failed, skipped, ...others } }: Plan): string {
  const total = done + failed + skipped + others.pending + others.running
  return `${done}/${total}${failed > 0 ? `, ${failed} failed` : ''}`
}

async function retry(text: string, options: SubmitOptions, cli: Cli): Promise<void> {
  const { client, id } = await find(text, cli)
  const plan = await client.plans.of(id).retry()
  if (!options.watch) return cli.output.out(`${plan.id}\n`)
  cli.output.err(`${plan.id}\n`)
  cli.exitWith(await followPlan(plan, { ...cli, isJson: false }))
}
