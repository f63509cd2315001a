import type { Command } from 'commander'
import type { Schema } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { addListOptions, type ListOptions, printList } from '../list.ts'
import { readDocument } from '../read-document.ts'
import { fieldLines } from '../text/fields.ts'
import { plainJson, plainLine } from '../text/plain.ts'

export function defineSchedules(command: Command, cli: Cli): void {
  addListOptions(command.command('ls').description('the schedules')).action((options: ListOptions) =>
    list(options, cli),
  )
  command
    .command('get <name>')
    .description('show a schedule')
    .option('--json', 'print it as JSON')
    .action(async (name: string, { json }: { json?: boolean }) => {
      const { raw } = await cli.engine()
      const schedule = await raw.get('/plans/schedules/{name}', { path: { name } })
      cli.output.out(json ? `${plainJson(schedule, 2)}\n` : fieldLines(schedule))
    })
  command
    .command('set <name> <file>')
    .description('store a schedule from a file of JSON or YAML with cron or every_secs, and a plan')
    .action(async (name: string, file: string) => {
      const body = (await readDocument(file, cli.io)) as Schema<'PlanScheduleRequest'>
      await (await cli.engine()).raw.put('/plans/schedules/{name}', { path: { name }, body })
      cli.output.out(`${plainLine(name)} stored\n`)
    })
  command
    .command('run <name>')
    .description('submit its plan now, and print the plan')
    .action(async (name: string) => {
      const { raw } = await cli.engine()
      const plan = await raw.post('/plans/schedules/{name}/run', { path: { name } })
      cli.output.out(`${plan.id}\n`)
    })
  command
    .command('rm <name>')
    .description('delete a schedule; its plans stay')
    .action(async (name: string) => {
      await (await cli.engine()).raw.delete('/plans/schedules/{name}', { path: { name } })
      cli.output.out(`${plainLine(name)} deleted\n`)
    })
}

async function list(options: ListOptions, cli: Cli): Promise<void> {
  const { raw } = await cli.engine()
  const { schedules } = await raw.get('/plans/schedules', { query: { limit: Math.min(options.limit, 100) } })
  printList<Schema<'PlanSchedule'>>(schedules, options, cli, {
    id: ({ name }) => name,
    nothing: 'there are no schedules',
    columns: [
      { title: 'NAME', value: ({ name }) => name, canShrink: true },
      {
        title: 'WHEN',
        value: ({ cron, timezone, every_secs: secs }) =>
          cron === undefined ? `every ${secs} s` : `${cron} ${timezone ?? 'UTC'}`,
      },
      { title: 'STEPS', value: ({ plan }) => String(plan.steps.length), isNumber: true, isMinor: true },
      { title: 'SKIPPED', value: ({ skipped_ticks: skipped }) => String(skipped), isNumber: true, isMinor: true },
      { title: 'NEXT', value: ({ paused, next_ticks: [next] }) => (paused ? 'paused' : (next ?? 'none')) },
      { title: 'LAST PLAN', value: ({ last_plan_id: last }) => last ?? 'none', isId: true },
    ],
  })
}
