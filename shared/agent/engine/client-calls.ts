import { AppError } from '../../kernel/errors.ts'
import type { ClientExecution, JsonObject, PermissionResolution } from '../../kernel/events.ts'
import { newId } from '../../kernel/ids.ts'
import type { Message } from '../providers/port.ts'
import { fail, type Tool, type ToolOutcome } from '../tools/port.ts'
import type { Ask, Decision } from './permissions.ts'
import type { RunResources } from './resources.ts'
import { parseInput } from './tool-input.ts'
import { isRefusedByPlan, keptAsk } from './tool-permission.ts'
import type { ToolCall } from './turn.ts'

/** A call that the client executes. Without an `ask` the run ends with it, and the client sends the answer with its next request (D45.6). */
export type ClientCall = { shown: ClientExecution; ask?: Ask }
export type ClientCalls = ReadonlyMap<string, ClientCall>

type Resources = Pick<RunResources, 'tools' | 'permissions' | 'signal' | 'progress'>
/** Checks a call: returns its tool and input, or the result of an invalid call. */
type Check = (call: ToolCall) => Promise<{ tool: Tool; input: JsonObject } | { refusal: ToolOutcome }>

const NO_CALLS: ClientCalls = new Map()

/**
 * Opens the calls that the client executes, before they are shown, because an answer may then come at once. Invalid calls, and calls that cannot be
 * opened, are left out. For a run that ends with its calls, none is opened if another call of the turn has a result, because the model needs that
 * result first.
 */
export function openClientCalls(calls: readonly ToolCall[], resources: Resources, check: Check) {
  const isEarlier = ({ id }: ToolCall) => resources.progress?.earlier(id)?.hasBegun === true
  const own = calls.filter((call) => !isEarlier(call) && (call.isForClient ?? isForClient(call, resources)))
  return own.length === 0 ? NO_CALLS : openAll(own, { calls, resources, check })
}

type Opening = { calls: readonly ToolCall[]; resources: Resources; check: Check }

async function openAll(own: readonly ToolCall[], { calls, resources, check }: Opening): Promise<ClientCalls> {
  const { permissions, signal } = resources
  const checked = await Promise.all(own.map(async (call) => ({ call, ready: await check(call) })))
  const usable = checked.flatMap(({ call, ready }) =>
    'refusal' in ready || isRefusedByPlan(ready.tool, permissions) ? [] : [{ call, input: ready.input }],
  )
  if (permissions.endsWithCalls) {
    const isAlone = usable.length === calls.length
    return isAlone ? new Map(usable.map(({ call }) => [call.id, { shown: { executor: 'client' } }])) : NO_CALLS
  }
  if (signal.aborted) return NO_CALLS
  const opened = usable.map(async ({ call, input }) => [call.id, await open(call, input, resources)] as const)
  return new Map((await Promise.all(opened)).flatMap(([id, made]) => (made ? [[id, made]] : [])))
}

async function open(
  { id: toolUseId, toolName }: ToolCall,
  input: JsonObject,
  { permissions, progress, tools }: Resources,
): Promise<ClientCall | undefined> {
  try {
    const kept = keptAsk(progress, { id: toolUseId, toolName, input })
    const ask = await permissions.openAsk({ kind: 'tool_call', toolUseId, toolName, input, message: '', ...kept })
    return { shown: { executor: 'client', expires_at: ask.expiresAt }, ask }
  } catch (cause) {
    if (!(cause instanceof AppError)) tools.onToolBug(toolName, cause)
    return undefined
  }
}

function isForClient(call: ToolCall, { tools: { toolBox } }: Pick<RunResources, 'tools'>): boolean {
  const { toolName, isCut } = call
  const tool = toolBox.find(toolName)
  if (!tool || isCut) return false
  const input = tool.ruleSubject ? parseInput(call.input) : undefined // Rules read only the input of tools with a `ruleSubject`.
  return toolBox.policyOf(toolName, input ?? {}) === 'client'
}

/** The result of a call that the client executes, and how it was answered. */
export type ClientOutcome = ToolOutcome & { answered: { how: PermissionResolution; by?: string } }

export async function clientOutcome(toolName: string, ask: Ask): Promise<ClientOutcome> {
  const { how, by, reason, answer } = await ask.decision
  const answered = { how, ...(by !== undefined && { by }) }
  return { ...(answer ?? fail(unanswered(toolName, { how, reason }))), answered }
}

function unanswered(toolName: string, { how, reason }: Pick<Decision, 'how' | 'reason'>): string {
  if (how === 'cancelled') return 'The run has ended.'
  return `The client of this run makes the calls of ${toolName}, and gave no answer${reason && `: ${reason}`}. Go on without it.`
}

const SAFE_ID = /^[A-Za-z0-9._:-]{1,128}$/

/**
 * Marks the calls that the client executes, and gives them unique ids for its answers: models repeat ids from turn to turn, and some ids cannot
 * be part of a path.
 */
export function withOwnIds(
  calls: readonly ToolCall[],
  { tools, messages }: Pick<RunResources, 'tools'> & { messages: readonly Message[] },
): ToolCall[] {
  const marked = calls.map((call) => ({ ...call, isForClient: isForClient(call, { tools }) }))
  if (!marked.some((call) => call.isForClient)) return marked
  const taken = new Set(messages.flatMap(callIds))
  return marked.map((call) => {
    const id = call.isForClient && (taken.has(call.id) || !SAFE_ID.test(call.id)) ? newId('call') : call.id
    taken.add(id)
    return { ...call, id }
  })
}

const callIds = (message: Message): string[] =>
  message.role === 'assistant' ? message.blocks.flatMap((block) => (block.type === 'tool_use' ? [block.id] : [])) : []
