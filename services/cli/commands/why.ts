import type { Command } from 'commander'
import type { AgentEngine, RunView, Schema } from '../../../shared/client/client.ts'
import { ApiError, RunFailed, RunLost, reduceRun } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { subjectOf } from '../follow/call-line.ts'
import { placed } from '../follow/run-lines.ts'
import { resolveId } from '../resolve-id.ts'
import { fieldLines } from '../text/fields.ts'
import { plainJson, plainLine } from '../text/plain.ts'

/** The known facts about how something went. `next`: what the user can do about it. */
type Reason = Record<string, unknown> & { id: string; status: string; next?: string[] }

export function defineWhy(command: Command, cli: Cli): void {
  command
    .argument('<id>', 'a run, plan or dispatch (trace_…), or the beginning or end of its id')
    .option('--json', 'print it as JSON')
    .action((id: string, options: { json?: boolean }) => why(id, options, cli))
}

async function why(text: string, { json }: { json?: boolean }, { engine, output }: Cli): Promise<void> {
  const client = await engine()
  const { kind, id } = await resolveId(client, text, ['run', 'plan', 'dispatch'])
  const reason =
    kind === 'plan'
      ? await whyPlan(client, id)
      : kind === 'dispatch'
        ? await whyDispatch(client, id)
        : await whyRun(client, id)
  if (json) return output.out(`${plainJson(reason, 2)}\n`)
  const { next = [], ...fields } = reason
  output.out(fieldLines(fields))
  for (const line of next) output.err(`${plainLine(line)}\n`)
}

/** Explains a run by its record and its events: the last turn, the tools that failed, the warnings and the message of the end. */
async function whyRun(client: AgentEngine, id: string): Promise<Reason> {
  const run = await client.runs.get(id)
  const view = run.ended_at === null ? undefined : await viewOf(client, id)
  const { step_id: step, plan_id: plan, flow, trace_id: trace } = run
  const next = [...(trace === undefined ? [] : [`ae why ${trace}`]), ...(plan === undefined ? [] : [`ae why ${plan}`])]
  const pending = run.ended_at === null ? await pendingOf(client, id) : []
  return {
    id,
    status: run.status,
    code: run.code,
    ...(view?.end?.event === 'error' && { error: view.end.data.error, suggestion: view.end.data.suggestion }),
    turn: view?.turn?.turn_number ?? run.turns,
    model: run.model,
    what: run.title ?? flow ?? step,
    ...(view && {
      tools: failedTools(view),
      denied: deniedOf(view),
      warnings: view.warnings.map(({ code, message }) => `${code}: ${message}`),
    }),
    waits_for: pending.map((each) => `${each.tool_name} ${subjectOf(each.input)} (${each.id})`),
    request_id: run.request_id,
    started_at: run.started_at,
    ended_at: run.ended_at,
    next: [...pending.map((each) => `ae allow ${each.id}`), ...next],
  }
}

/** The run from its events; `undefined` when they are not kept. */
async function viewOf(client: AgentEngine, id: string): Promise<RunView | undefined> {
  let view: RunView | undefined
  try {
    for await (const event of client.runs.resume(id)) view = reduceRun(view, event)
  } catch (cause) {
    if (!(cause instanceof RunFailed || cause instanceof RunLost || cause instanceof ApiError)) throw cause
  }
  return view
}

const failedTools = ({ blocks }: RunView): string[] =>
  placed(blocks).flatMap(({ block }) =>
    block.kind === 'tool' && block.result?.is_error
      ? [`${block.call.tool_name} ${subjectOf(block.call.input)}: ${plainLine(block.result.output).slice(0, 200)}`]
      : [],
  )

const deniedOf = ({ permissions }: RunView): string[] =>
  permissions
    .filter(({ state }) => state === 'denied')
    .map(({ request, resolution }) => `${request.tool_name} ${subjectOf(request.input)} (${resolution?.how ?? ''})`)

const pendingOf = async (client: AgentEngine, id: string): Promise<Schema<'PendingPermission'>[]> =>
  (await client.permissions.list().all()).filter(({ run_id: run }) => run === id)

async function whyPlan(client: AgentEngine, id: string): Promise<Reason> {
  const plan = await client.plans.of(id).get()
  const failed = Object.entries(plan.step_errors ?? {})
  const runs = failed.map(([step]) => plan.step_runs[step]?.run_id).filter((run) => typeof run === 'string')
  const canRetry = plan.status === 'failed' || plan.status === 'cancelled'
  return {
    id,
    status: plan.status,
    what: plan.title,
    error: plan.error,
    steps: Object.fromEntries(plan.steps.map(({ id: step }) => [step, plan.step_statuses[step]])),
    errors: Object.fromEntries(failed),
    started_at: plan.started_at,
    ended_at: plan.ended_at,
    next: [...runs.map((run) => `ae why ${run}`), ...(canRetry ? [`ae plans retry ${id}`] : [])],
  }
}

async function whyDispatch(client: AgentEngine, id: string): Promise<Reason> {
  const { flow, status, error, problems, raw_output: raw, ...rest } = await client.dispatches.get(id)
  return {
    id,
    status,
    flow: `${flow.name} ${flow.version}`,
    error,
    problems: problems?.map((each) => plainJson(each)),
    raw_output: problems === undefined ? undefined : raw,
    instance: rest.served_instance ?? rest.provider_instance,
    model: rest.model,
    turns: rest.turns,
    started_at: rest.started_at,
    ended_at: rest.ended_at,
  }
}
