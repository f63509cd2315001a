import type { ItemAnswers } from '../../shared/agent/providers/batch/answered-calls.ts'
import { type CallKeeper, RecordedCalls } from '../../shared/agent/tools/recorded-calls.ts'
import { once } from '../../shared/kernel/async/once.ts'
import { AppError } from '../../shared/kernel/errors.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { CompileFlow } from '../../shared/work/flows/compile.ts'
import type { FlowExecution } from '../../shared/work/flows/execute/execute.ts'
import type { FlowMemory } from '../../shared/work/flows/flow-memory.ts'
import type { Dispatch, Dispatches, FlowRef } from '../../shared/work/flows/port.ts'
import type { StoredFlows } from '../../shared/work/flows/stored-flows.ts'
import { numbersBefore } from '../../shared/work/flows/transitions.ts'

export type FlowPreparationDeps = {
  dispatches: Pick<Dispatches, 'input' | 'noteAction'>
  library: Pick<StoredFlows, 'definitionOf'>
  compile: CompileFlow
  memory: Pick<FlowMemory, 'promptText'>
  /** Whether this process may still act for what it has claimed. */
  isHeld(): boolean
  log: Log
}

type Answers = ItemAnswers['answers']

/** Reads what an execution needs: the flow, its input and its precedents, and the answers that a vendor's batch has already given. */
export class FlowPreparation {
  readonly #deps: FlowPreparationDeps

  constructor(deps: FlowPreparationDeps) {
    this.#deps = deps
  }

  /** `answers`: those of a vendor's batch to this execution's calls of models, if it has some. Throws `unavailable` without an input, and `upstream` for a flow that cannot be run. */
  async execution(tenant: TenantId, dispatch: Dispatch, answers: Answers | undefined): Promise<FlowExecution> {
    const { trace_id: traceId, flow, provider_instance: instance, model, fallback, priority, deadline_at } = dispatch
    const [input, prepared] = await Promise.all([this.#deps.dispatches.input(tenant, traceId), this.flow(tenant, flow)])
    if (!input) throw noInput()
    const route = { instance, model }
    const recording = {
      isRecovered: numbersBefore(dispatch) > 0,
      beforeAction: actionRecorder(tenant, dispatch, this.#deps.dispatches),
    }
    const deadlineMs = deadline_at === undefined ? undefined : Date.parse(deadline_at)
    const caller = priority && { caller: { priority, ...(deadlineMs !== undefined && { deadlineMs }) } }
    const answered = answers && { answers: { traceId, answers }, calls: this.recordedCalls(traceId, answers) }
    return { traceId, ...prepared, input, route, fallback, ...recording, ...caller, ...answered }
  }

  async flow(tenant: TenantId, ref: FlowRef): Promise<Pick<FlowExecution, 'flow' | 'templates' | 'memory'>> {
    const { library, memory, compile } = this.#deps
    const definition = await library.definitionOf(tenant, ref)
    if (!definition) throw gone(ref.name)
    const compiled = await compile(tenant, definition, { wasPublished: true })
    if ('problems' in compiled)
      throw new AppError('upstream', `the flow cannot be run: ${compiled.problems[0].message}`)
    const { templates, usesMemory } = compiled
    const flow = { ...ref, definition }
    return { flow, templates, memory: usesMemory ? await memory.promptText(tenant, ref.uid) : '' }
  }

  recordedCalls(traceId: string, kept: Answers, keeper?: CallKeeper): RecordedCalls {
    const { isHeld, log } = this.#deps
    const assertMayAct = () => {
      if (!isHeld()) throw new AppError('unavailable', 'this process may not act at the moment')
    }
    const onToolBug = (tool: string, cause: unknown) =>
      log.error('a tool failed by a bug', { trace_id: traceId, tool, cause })
    return new RecordedCalls({ traceId, kept, keeper, assertMayAct, onToolBug })
  }
}

/**
 * Returns a function that records, once, that a flow's run may now have effects outside (D34.2). The record also checks that this executor still has
 * the claim: a database that has lost a server may have lost the claim.
 */
export function actionRecorder(
  tenant: TenantId,
  { executor, trace_id: traceId }: Dispatch,
  dispatches: Pick<Dispatches, 'noteAction'>,
): FlowExecution['beforeAction'] {
  if (executor === null) return undefined
  return once(async () => {
    if (!(await dispatches.noteAction(tenant, traceId, executor))) throw new Error('another executor has the run')
  })
}

/** The error for a run whose input no executor can read. */
const noInput = () =>
  new AppError(
    'unavailable',
    'the input of this run was not stored: the process that accepted it has ended; send the request again',
  )

/** The error for a run whose flow no longer exists. */
const gone = (name: string) =>
  new AppError('upstream', `the flow ${name} was deleted before this run began; store and publish it again`)
