import { healthOf, passedOver } from '../../../agent/providers/failures/failover.ts'
import type { Caller, ModelProvider } from '../../../agent/providers/port.ts'
import { AppError } from '../../../kernel/errors.ts'
import type { FlowFailure, OutputProblem } from '../../../kernel/events.ts'
import type { FlowRoute, SubAgentDefinition } from '../port.ts'
import { type CallRoutes, isProviderFailure } from './call-routes.ts'
import { converse, type DialogueDeps, type Ending, type Failed, type Speaker } from './dialogue.ts'
import { failureOf, type Place } from './outcome.ts'

export type Agent = Speaker & {
  /** Its own instance and model, if it has them. */
  own: Pick<SubAgentDefinition, 'provider_instance' | 'model'> | undefined
}

export type AgentDeps = DialogueDeps & {
  routes: CallRoutes
  caller?: Caller | undefined
  /** Throws an `AppError` when the instance or its key is gone. */
  openModel(instance: string, agent: string): Promise<ModelProvider>
}

/** `instance` is the one that gave the answer. */
export type AgentResult =
  | { kind: 'ok'; output: unknown; text: string; instance: string }
  | { kind: 'invalid'; text: string; problems: readonly OutputProblem[]; instance: string }
  | { kind: 'failed'; failure: FlowFailure }

/**
 * Runs an agent to a checked output. When its provider fails and the call has a fallback, the agent starts again there (api.md
 * "Named flows" 6).
 */
export async function runAgent(agent: Agent, deps: AgentDeps): Promise<AgentResult> {
  const { routes, signal, log } = deps
  const { route, canSwitch } = routes.routeOf(agent.own)
  const skipped = canSwitch ? await passOver(route, agent, deps) : undefined
  const end = skipped ?? (await runOn(route, agent, deps))
  if (!('code' in end)) return { ...end, instance: route.instance }
  if (!canSwitch || signal.aborted || !isProviderFailure(end)) {
    return { kind: 'failed', failure: failureAt(end, { agent: agent.name, instance: route.instance }) }
  }
  const warning = routes.switchAfter(route, end)
  if (warning) await log.warn(agent.name, warning)
  return runAgent(agent, deps)
}

const failureAt = ({ code, error, retry_after_secs }: Failed, place: Place): FlowFailure => ({
  ...failureOf(code, error, place),
  ...(retry_after_secs !== undefined && { retry_after_secs }),
})

/** Why the model of this route is not called: it rests, and the fallback does not (D56.2). */
async function passOver(route: FlowRoute, agent: Agent, deps: AgentDeps): Promise<Failed | undefined> {
  const restsAt = async ({ instance, model }: FlowRoute, isFallback: boolean) => {
    const provider = await open(instance, agent.name, deps)
    if ('code' in provider || provider.isAnswered?.()) return isFallback
    const health = healthOf({ provider, model })
    return isFallback ? health.rests(performance.now()) : health.isPassedOver(performance.now())
  }
  const { fallback } = deps.routes
  if (!fallback || !(await restsAt(route, false)) || (await restsAt(fallback, true))) return undefined
  return { code: 'provider_unavailable', error: passedOver(route.instance), detail: 'provider_skipped' }
}

/** Has one model answer until the output is valid. */
async function runOn(route: FlowRoute, agent: Agent, deps: AgentDeps): Promise<Ending> {
  const provider = await open(route.instance, agent.name, deps)
  if ('code' in provider) return provider
  return converse(agent, { route, model: { provider, model: route.model, caller: deps.caller } }, deps)
}

/** An instance without a usable key, or that is gone, counts as a failure of the provider. */
async function open(instance: string, agent: string, { openModel }: AgentDeps): Promise<ModelProvider | Failed> {
  try {
    return await openModel(instance, agent)
  } catch (cause) {
    if (!isGone(cause)) throw cause
    return { code: 'provider_auth', error: cause.message, detail: 'instance_unusable' }
  }
}

const KEY_CODES: ReadonlySet<string> = new Set(['secret_missing', 'secret_unreadable', 'master_key_missing'])

const isGone = (cause: unknown): cause is AppError =>
  cause instanceof AppError &&
  (cause.kind === 'not_found' || cause.kind === 'invalid_request' || KEY_CODES.has(cause.code ?? ''))
