import type { Command } from 'commander'
import type { Cli } from '../cli.ts'
import { CliError, EXIT } from '../exit-codes.ts'
import { followBatch } from '../flows/batch.ts'
import { followPlan } from '../follow/follow-plan.ts'
import { followRun } from '../follow/follow-run.ts'
import { resolveId } from '../resolve-id.ts'
import { type ApprovalOptions, addApprovalOptions, approvalOf } from './options.ts'

export function defineAttach(command: Command, cli: Cli): void {
  command.argument('<id>', 'a run, a session, a plan or a batch, or the beginning or end of its id')
  addApprovalOptions(command).action((id: string, options: ApprovalOptions) => attach(id, options, cli))
}

async function attach(text: string, options: ApprovalOptions, cli: Cli): Promise<void> {
  const { io, output, engine, exitWith } = cli
  const client = await engine()
  const { kind, id } = await resolveId(client, text, ['run', 'session', 'plan', 'batch'])
  if (kind === 'batch') return followBatch(id, {}, cli)
  if (kind === 'plan')
    return exitWith(await followPlan(client.plans.of(id), { io, output, isJson: Boolean(options.json) }))
  const runId = kind === 'session' ? await activeRunOf(id) : id
  const start = (follow: object) => client.runs.resume(runId, follow)
  exitWith(await followRun({ io, output, approval: approvalOf(options), isJson: Boolean(options.json), start }))

  async function activeRunOf(session: string): Promise<string> {
    const { active_run_id: active } = await (await client.sessions.open(session)).get()
    if (active !== null) return active
    throw new CliError(EXIT.notFound, `nothing runs in the session ${session}`, `ae chat ${session} continues it.`)
  }
}
