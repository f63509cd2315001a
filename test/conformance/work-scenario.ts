import { type AgentEngine, type PermissionAsk, RunFailed } from '../../shared/client/client.ts'
import type { ExpectedFlow, ExpectedInbox, ExpectedPlan } from './scenario.ts'

/** The plan of each scenario of a plan. */
export const PLAN_ID = `plan_${'1'.padStart(32, '0')}`

/** Runs the flow `total` of a scenario. */
export async function runFlow(engine: AgentEngine): Promise<ExpectedFlow & { ids: number[] }> {
  const ids: number[] = []
  const onEvent = ({ id }: { id: number }) => void ids.push(id)
  const request = { instance: 'main', input: { text: 'Two chairs, 60 each' } }
  try {
    const outcome = await engine.flows.run('total', request, { onEvent })
    const rest = outcome.ok
      ? ({ end: 'ok', output: outcome.output } as const)
      : ({ end: 'invalid_output', problems: outcome.problems.length } as const)
    return { events: ids.length, ...rest, ids }
  } catch (cause) {
    if (!(cause instanceof RunFailed)) throw cause
    return { events: ids.length, end: 'error', code: cause.code, ids }
  }
}

/** Follows the plan of a scenario to its end. */
export async function watchPlan(engine: AgentEngine): Promise<ExpectedPlan> {
  const progress: string[] = []
  for await (const { done, total, status, steps } of engine.plans.of(PLAN_ID).progress())
    progress.push(`${done}/${total} ${status} ${steps.map((step) => step.status).join(' ')}`)
  return { progress }
}

/** Reads the inbox until it has shown as many requests as are expected, and leaves it then. */
export async function watchInbox(engine: AgentEngine, { asks }: ExpectedInbox): Promise<ExpectedInbox> {
  const shown: PermissionAsk[] = []
  for await (const ask of engine.permissions.watch()) if (shown.push(ask) === asks.length) break
  return { asks: shown.map(({ id, resolution }) => ({ id, how: resolution?.how ?? null })) }
}
