import { AppError, hasKind } from '../../kernel/errors.ts'
import type { AgentEvent, JsonObject } from '../../kernel/events.ts'
import { showControls } from '../../kernel/text.ts'
import { fail, mayRunEdited, type Tool, type ToolBox, type ToolOutcome } from '../tools/port.ts'
import type { AskingCall, AskState, CallProgress } from './call-progress.ts'
import type { EventQueue } from './event-queue.ts'
import type { AskRequest, Decision, Permissions } from './permissions.ts'
import type { RunResources } from './resources.ts'

/** A call of a known tool with a valid input. `id` is the id in its `tool_use` event. */
export type ReadyCall = { id: string; tool: Tool; input: JsonObject }

export type PermissionStep = Pick<RunResources, 'tools' | 'permissions' | 'signal' | 'progress'> & {
  events: Pick<EventQueue<AgentEvent>, 'push'>
}

/** The call may be made with this input, or gets this result instead. `isEdited`: the client has changed the model's input. */
export type Permit = { input: JsonObject; isEdited?: true } | { refusal: ToolOutcome }

/** Obtains the permission that a call needs: plan mode, the policy or the client may refuse the call, and the client may change its input. */
export async function permit(call: ReadyCall, step: PermissionStep): Promise<Permit> {
  const { planMode, remembered } = step.permissions
  const { tool, input } = call
  const { name } = tool
  if (isRefusedByPlan(tool, step.permissions)) return refuse(`${name} is not run: ${PLAN_MODE}`)
  const policy = step.tools.toolBox.policyOf(name, input)
  if (policy === 'client') return refuse(notHandedOver(name, step.permissions))
  if (policy === 'deny') return refuse(`${name} is switched off by this server's policy. Go on without it.`)
  const mustAsk = policy === 'ask' && (tool.alwaysAsks || !remembered?.has(name))
  const permitted = mustAsk ? await askFor(call, step) : { input }
  if (!('refusal' in permitted) && tool.endsPlanMode && planMode) planMode.isOn = false
  return permitted
}

const refuse = (output: string): Permit => ({ refusal: fail(output) })

/** Until its plan is approved the run may only use read-only tools. */
export const isRefusedByPlan = (tool: Tool, { planMode }: Permissions): boolean =>
  planMode?.isOn === true && !tool.isReadOnly && !tool.endsPlanMode

/** The message for a valid client call that was not handed over. */
const notHandedOver = (toolName: string, { endsWithCalls }: Permissions): string =>
  endsWithCalls
    ? `${toolName} was not called: it can only be called alone, or together with tools of its kind. Read the other results, and call it again if you still need it.`
    : `${toolName} is called by the client of this run, which could not be asked. Go on without it.`

const PLAN_MODE =
  'this run may only look until the user has approved a plan. Show the plan with ExitPlanMode before you change anything.'

/** Asks the client. Without a decision the answer is a refusal. */
async function askFor(call: ReadyCall, step: PermissionStep): Promise<Permit> {
  const { id: toolUseId, tool, input } = call
  const { tools, permissions, signal, progress } = step
  const toolName = tool.name
  const message = showControls(tool.describe(input))
  const preview = await previewOf(call, tools)
  if (signal.aborted) return refuse('The run has ended.')
  const kept = keptAsk(progress, { id: toolUseId, toolName, input })
  const decision = await askClient({ toolUseId, toolName, input, message, preview, ...kept }, step)
  if (!decision) return refuse(`Permission to use ${toolName} was denied: the permission could not be asked`)
  const { allow, reason, input: edited, remember } = decision
  if (remember && !tool.alwaysAsks) permissions.remembered?.add(toolName)
  if (!allow) return refuse(`Permission to use ${toolName} was denied${reason && `: ${reason}`}`)
  return edited ? checkEdited(toolName, edited, step) : { input }
}

/** Opens a request, and shows it and its decision to the readers. Resolves with nothing when it could not be opened. */
export async function askClient(
  request: AskRequest,
  { tools, permissions, events }: Pick<PermissionStep, 'tools' | 'permissions' | 'events'>,
): Promise<Decision | undefined> {
  const { toolUseId, toolName, input, message, preview } = request
  const ask = await permissions.openAsk(request).catch((cause: unknown) => {
    if (!(cause instanceof AppError)) tools.onToolBug(toolName, cause)
  })
  if (!ask) return undefined
  const subject = { id: ask.id, tool_use_id: toolUseId, tool_name: toolName }
  const asked = { input, message, ...(preview && { preview }), expires_at: ask.expiresAt }
  events.push({ type: 'permission_request', ...subject, ...asked })
  const decision = await ask.decision
  const { remember: _, ...outcome } = decision
  events.push({ type: 'permission_resolved', ...subject, ...outcome })
  return decision
}

/** Makes an ask that another process can continue, or continues one that an earlier process has opened. */
export const keptAsk = (progress: CallProgress | undefined, call: AskingCall) =>
  progress && {
    earlier: progress.earlierAsk(call),
    async keep(ask: AskState) {
      if (!(await progress.ask(call, ask))) throw new AppError('unavailable', 'another process has the run')
    },
  }

/** A preview that fails is left out: the request is made without it. */
async function previewOf({ tool, input }: ReadyCall, tools: PermissionStep['tools']) {
  const { toolBox, workspace, bringFiles, onToolBug } = tools
  try {
    if (tool.usesFiles && tool.preview) await bringFiles?.()
    const policyOf: ToolBox['policyOf'] = (name, other) => toolBox.policyOf(name, other)
    return await tool.preview?.(input, { workspace: workspace(), policyOf })
  } catch (cause) {
    if (!hasKind(cause, 'unavailable')) onToolBug(tool.name, cause)
    return undefined
  }
}

/** Checks the changed input again: the gateway has checked it with its own tools, which may differ. */
async function checkEdited(name: string, input: JsonObject, { tools: { toolBox } }: PermissionStep): Promise<Permit> {
  const problem = await toolBox.problemWith(name, input)
  if (problem !== undefined) return refuse(`The user allowed ${name} with another input, which is wrong. ${problem}`)
  if (!mayRunEdited(toolBox.policyOf(name, input, true)))
    return refuse(
      `The user allowed ${name} with another input, which this server's policy forbids, or may forbid. Go on without it.`,
    )
  return { input, isEdited: true }
}
