import type { ModelProvider } from '../../../agent/providers/port.ts'
import { AppError } from '../../../kernel/errors.ts'
import type { FlowFailure, JsonObject, OutputProblem } from '../../../kernel/events.ts'
import type { SchemaChecker } from '../../../platform/schemas/port.ts'
import type { FlowRoute, SubAgentDefinition } from '../port.ts'
import { Dialogue, type DialogueDeps, type Failed, type Speaker } from './dialogue.ts'
import { failureOf } from './outcome.ts'
import { checkOutput, correctionPrompt, repairWarning, shownProblems } from './output.ts'
import { type CallRoutes, isProviderFailure } from './routes.ts'

export type Agent = Speaker & {
  prompt: string
  schema: JsonObject
  /** Its own instance and model, if it has them. */
  own: Pick<SubAgentDefinition, 'provider_instance' | 'model'> | undefined
}

export type AgentDeps = DialogueDeps & {
  routes: CallRoutes
  checker: Pick<SchemaChecker, 'check'>
  /** Throws an `AppError` when the instance or its key is gone. */
  openModel(instance: string): Promise<ModelProvider>
}

/** `instance` is the one that gave the answer. */
export type AgentResult =
  | { kind: 'ok'; output: unknown; text: string; instance: string }
  | { kind: 'invalid'; text: string; problems: readonly OutputProblem[]; instance: string }
  | { kind: 'failed'; failure: FlowFailure }

/** How often an agent may answer until its output is valid (D6.4). */
export const MAX_TRIES = 3

/**
 * Runs an agent to a checked output. When its provider fails and the call has a fallback, the agent starts again there (api.md
 * "Named flows" 6).
 */
export async function runAgent(agent: Agent, deps: AgentDeps): Promise<AgentResult> {
  const { routes, signal, log } = deps
  const { route, canSwitch } = routes.routeOf(agent.own)
  const end = await runOn(route, agent, deps)
  if (!('code' in end)) return { ...end, instance: route.instance }
  if (!canSwitch || signal.aborted || !isProviderFailure(end)) {
    return { kind: 'failed', failure: failureOf(end.code, end.error, { agent: agent.name, instance: route.instance }) }
  }
  const warning = routes.switchAfter(route, end)
  if (warning) await log.warn(agent.name, warning)
  return runAgent(agent, deps)
}

type Invalid = { kind: 'invalid'; text: string; problems: readonly OutputProblem[] }
type Ending = { kind: 'ok'; output: unknown; text: string } | Invalid | Failed

/** Has one model answer until the output is valid: each wrong answer is followed by a message that lists its problems. */
async function runOn(route: FlowRoute, agent: Agent, deps: AgentDeps): Promise<Ending> {
  const provider = await open(route.instance, deps)
  if ('code' in provider) return provider
  const dialogue = new Dialogue(agent, { route, model: { provider, model: route.model } }, deps)
  let { prompt } = agent
  let problems: readonly OutputProblem[] = []
  for (let tries = 1; ; tries++) {
    const reply = await dialogue.ask(prompt, problems)
    if ('failure' in reply) return reply.failure
    const { text } = reply
    const checked = await checkOutput(text, agent.schema, deps.checker)
    if ('value' in checked) {
      const warning = repairWarning(checked.repairs)
      if (warning) await deps.log.warn(agent.name, warning)
      return { kind: 'ok', output: checked.value, text }
    }
    problems = shownProblems(checked.problems)
    if (tries === MAX_TRIES) return { kind: 'invalid', text, problems }
    prompt = correctionPrompt(checked.problems)
  }
}

/** An instance without a usable key, or that is gone, counts as a failure of the provider. */
async function open(instance: string, { openModel }: AgentDeps): Promise<ModelProvider | Failed> {
  try {
    return await openModel(instance)
  } catch (cause) {
    if (!isGone(cause)) throw cause
    return { code: 'provider_auth', error: cause.message, detail: 'instance_unusable' }
  }
}

const KEY_CODES: ReadonlySet<string> = new Set(['secret_missing', 'secret_unreadable', 'master_key_missing'])

const isGone = (cause: unknown): cause is AppError =>
  cause instanceof AppError &&
  (cause.kind === 'not_found' || cause.kind === 'invalid_request' || KEY_CODES.has(cause.code ?? ''))
