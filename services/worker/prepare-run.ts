import type { RunRequest } from '../../shared/broker/port.ts'
import type { Conversation } from '../../shared/engine/conversation.ts'
import type { OpenAsk } from '../../shared/engine/permissions.ts'
import { run as runEngine } from '../../shared/engine/run.ts'
import { AppError } from '../../shared/errors.ts'
import type { WarningEvent } from '../../shared/events.ts'
import type { ModelRoute, PriceOf, WindowOf } from '../../shared/providers/port.ts'
import type { ToolBox, ToolServices } from '../../shared/tools/port.ts'
import type { Run, RunExecutor } from './run.ts'

export type EngineParts = {
  /** The cluster may have no model of its own (D1.4). */
  primary: ModelRoute | undefined
  fallback?: ModelRoute
  toolBox: ToolBox
  priceOf: PriceOf
  windowOf?: WindowOf
  openAskFor: (run: Run) => OpenAsk
  canAct: (signal: AbortSignal) => Promise<boolean>
  workspaceOf: (run: Run) => string
  /** Default of `max_turns`. */
  maxTurns: number
  maxToolOutputChars: number
  onToolBug(run: Run, toolName: string, cause: unknown): void
}

/** What a run starts from besides its request. */
export type RunStart = {
  conversation: Conversation
  background?: string
  warnings?: readonly WarningEvent[]
  facilities?: ToolServices
}

/**
 * Makes of a request what a run executes; `start` is asked when its turn has come. Throws `unavailable` when there is no model
 * for it.
 */
export type PrepareRun = (request: RunRequest, start: () => RunStart) => RunExecutor

/** One engine for one-shot runs and sessions alike: only the history they start from differs (D5.7). */
export function createPrepareRun(parts: EngineParts): PrepareRun {
  const { primary, openAskFor, workspaceOf, maxTurns, maxToolOutputChars, onToolBug, ...shared } = parts
  return (request, start) => {
    if (!primary) throw noModel()
    return (run, signal) => {
      const { conversation, background, warnings = [], facilities = {} } = start()
      return runEngine(
        {
          prompt: request.prompt,
          ...(request.system_prompt !== undefined && { systemPrompt: request.system_prompt }),
          ...(background !== undefined && { background }),
          maxTurns: request.max_turns ?? maxTurns,
          stopSequences: request.stop_sequences ?? [],
          warnings,
        },
        {
          ...shared,
          primary: request.model === undefined ? primary : { ...primary, model: request.model },
          conversation,
          facilities,
          openAsk: openAskFor(run),
          workspace: () => workspaceOf(run),
          signal,
          maxOutputChars: maxToolOutputChars,
          onToolBug: (toolName, cause) => onToolBug(run, toolName, cause),
        },
      )
    }
  }
}

const NO_MODEL_RETRY_SECS = 30

const noModel = () =>
  new AppError('unavailable', 'no model is configured for this run: set MODEL and MODEL_PROVIDER', {
    retryAfterSecs: NO_MODEL_RETRY_SECS,
  })
