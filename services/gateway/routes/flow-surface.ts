import type { RequestHandler } from 'express'
import { AppError } from '../../../shared/kernel/errors.ts'
import type { FlowCalls } from '../../../shared/work/flows/calls/calls.ts'
import type { FlowChecks } from '../../../shared/work/flows/check/check.ts'
import type { FlowEvaluator } from '../../../shared/work/flows/evaluate/evaluate.ts'
import type { EvaluationHistory } from '../../../shared/work/flows/evaluate/history.ts'
import type { FlowMemory } from '../../../shared/work/flows/flow-memory.ts'
import type { FlowLibrary } from '../../../shared/work/flows/library.ts'
import { refuseDisabled } from './config/enabled.ts'

type LibraryCall = 'list' | 'get' | 'put' | 'publish' | 'rollback' | 'remove' | 'revisions' | 'catalogue'

/** The services behind the flow endpoints. They exist in a process with a store. */
export type FlowSurface = {
  library: Pick<FlowLibrary, LibraryCall>
  memory: Pick<FlowMemory, 'list' | 'add' | 'remove'>
  checks: Pick<FlowChecks, 'check'>
  evaluations: Pick<EvaluationHistory, 'list'>
  /** `undefined` without a master key: flows can be edited, but no provider can be called. */
  execution: FlowExecution | undefined
}

export type FlowExecution = { calls: Pick<FlowCalls, 'start'>; evaluator: Pick<FlowEvaluator, 'evaluate'> }

/** Creates handlers that need the store; without one they answer 503. */
export const storedWith =
  (flows: FlowSurface | undefined) =>
  (create: (flows: FlowSurface) => RequestHandler): RequestHandler =>
    flows ? create(flows) : refuseStoreless

/** Creates handlers that call a provider; without a master key they answer 503. */
export const executedWith =
  (flows: FlowSurface | undefined) => (create: (execution: FlowExecution) => RequestHandler) =>
    storedWith(flows)(({ execution }) => (execution ? create(execution) : refuseDisabled))

const refuseStoreless: RequestHandler = () => {
  throw new AppError('unavailable', 'this server has no store for flows: set MONGODB_URL and start it again')
}
