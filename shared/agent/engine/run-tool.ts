import { AppError, hasKind } from '../../kernel/errors.ts'
import type { AgentEvent, JsonObject } from '../../kernel/events.ts'
import { isJsonObject } from '../../kernel/json.ts'
import { listOf, showControls } from '../../kernel/text.ts'
import {
  type AskPerson,
  fail,
  type Question,
  type Tool,
  type ToolBox,
  type ToolContext,
  type ToolOutcome,
} from '../tools/port.ts'
import type { EventQueue } from './event-queue.ts'
import { type EngineSubAgents, keptSubAgents } from './sub-agents.ts'
import { askClient, type PermissionStep } from './tool-permission.ts'
import type { ToolCall } from './turn.ts'

/** The parts of a turn that its tools need. */
export type ToolRun = PermissionStep & {
  events: Pick<EventQueue<AgentEvent>, 'push' | 'offer'>
  agents: EngineSubAgents
}

/**
 * Runs the tool once this process may act for the run. If the lease comes into doubt before a tool's first effect the tool stops; it
 * has done nothing, so it runs again unless the run ends.
 */
export async function runTool(
  tool: Tool,
  input: JsonObject,
  { call, step }: { call: ToolCall; step: ToolRun },
): Promise<ToolOutcome> {
  for (;;) {
    const mayStart = (await step.tools.canAct(step.signal)) && (await hasStored(tool, call, step))
    if (!mayStart || step.signal.aborted) return fail('The run has ended.')
    const effects: Effects = { allowed: 0, refused: 0 }
    const outcome = await tryTool(tool, input, { call, step, effects })
    if (effects.refused === 0 || effects.allowed > 0) return storeEffects(tool, outcome, step)
  }
}

/** Tells the model which changes are not stored: they are lost if this server fails. */
async function storeEffects(
  { usesFiles = false, isReadOnly = false }: Tool,
  outcome: ToolOutcome,
  { tools, progress }: ToolRun,
): Promise<ToolOutcome> {
  const unstored = usesFiles && !isReadOnly ? await tools.storeFiles?.() : undefined
  if (!unstored) return outcome
  progress?.noteFiles(unstored)
  if (unstored.length === 0) return outcome
  const note = `These changes could not be stored yet, and are lost if this server fails: ${listOf(unstored.map(({ path }) => path))}`
  return { ...outcome, output: `${outcome.output}\n\n[${note}]` }
}

/** Stores the beginning of a call that may change something before it runs, so that it never runs twice. */
const hasStored = ({ isReadOnly = false, isIdempotent = false }: Tool, { id }: ToolCall, { progress }: ToolRun) =>
  isReadOnly || isIdempotent || !progress ? true : progress.begin(id)

type Trial = { call: ToolCall; step: ToolRun; effects: Effects }

async function tryTool(tool: Tool, input: JsonObject, { call, step, effects }: Trial): Promise<ToolOutcome> {
  try {
    if (tool.usesFiles) await step.tools.bringFiles?.()
    await using questions = openQuestions(call, step)
    return await tool.run(input, { ...contextOf(call, step, effects), ask: questions.ask })
  } catch (cause) {
    if (step.signal.aborted && cause === step.signal.reason) return fail('The run has ended.')
    if (effects.refused > 0) return fail(MAY_NOT_ACT)
    if (effects.allowed === 0 && hasKind(cause, 'unavailable')) return fail(`The call was not made: ${cause.message}`)
    step.tools.onToolBug(call.toolName, cause)
    return fail(`${call.toolName} failed unexpectedly. Try another way.`)
  }
}

/** How often a tool has asked, right before an effect, whether this process may act: counted by answer. */
type Effects = { allowed: number; refused: number }

/** Makes a call end after its questions, so that each of them is resolved before the call's result. */
function openQuestions(call: ToolCall, step: ToolRun): AsyncDisposable & { ask: AskPerson } {
  const ask = createAskPerson(call, step)
  const asked: Promise<unknown>[] = []
  return {
    ask(question) {
      const answer = ask(question)
      asked.push(answer)
      return answer
    },
    async [Symbol.asyncDispose]() {
      await Promise.allSettled(asked)
    },
  }
}

function contextOf({ id, toolName }: ToolCall, step: ToolRun, effects: Effects): Omit<ToolContext, 'ask'> {
  const { tools, signal, events, agents } = step
  const report = (progress: number, detail: string) =>
    events.offer({ type: 'tool_progress', id, tool_name: toolName, progress, detail })
  const assertMayAct = () => {
    signal.throwIfAborted()
    const mayAct = tools.mayAct()
    effects[mayAct ? 'allowed' : 'refused'] += 1
    if (!mayAct) throw new AppError('unavailable', MAY_NOT_ACT)
  }
  const { toolBox, services } = tools
  const policyOf: ToolBox['policyOf'] = (name, input) => toolBox.policyOf(name, input)
  const ofCall = { owner: tools.owner, workspace: tools.workspace(), agents: keptSubAgents(agents, id, step.progress) }
  return { ...services, ...ofCall, signal, assertMayAct, report, policyOf }
}

/**
 * Asks a tool's question like a permission request (D40.4): the client sees a request with the form or the address, and its reply allows the request
 * with the answer as the changed input. Without a reply, or if nobody can be asked, the answer is `cancel`.
 */
const createAskPerson =
  (call: { id: string; toolName: string }, step: ToolRun): AskPerson =>
  async (question) => {
    if (step.signal.aborted) return { action: 'cancel' }
    const input = 'url' in question ? {} : defaultsOf(question.form)
    const request = { toolUseId: call.id, toolName: call.toolName, input, ...shown(question) }
    const decision = await askClient(request, step)
    if (!decision) return { action: 'cancel' }
    if (!decision.allow) return { action: decision.how === 'reply' ? 'decline' : 'cancel' }
    return 'url' in question ? { action: 'accept' } : { action: 'accept', content: decision.input ?? input }
  }

const shown = (question: Question) => ({
  message: showControls(question.message),
  preview:
    'url' in question
      ? ({ kind: 'link', url: showControls(question.url) } as const)
      : ({ kind: 'form', schema: question.form } as const),
})

/** The default values of a form's fields. */
function defaultsOf({ properties }: JsonObject): JsonObject {
  const fields = isJsonObject(properties) ? Object.entries(properties) : []
  return Object.fromEntries(
    fields.flatMap(([name, field]) => (isJsonObject(field) && 'default' in field ? [[name, field['default']]] : [])),
  )
}

const MAY_NOT_ACT = 'The call was not made, because this server lost its connection to the others. Try again.'
