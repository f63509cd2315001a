import type { RunRequest } from '../../shared/broker/port.ts'
import type { Conversation } from '../../shared/engine/conversation.ts'
import type { OpenAsk } from '../../shared/engine/permissions.ts'
import type { Models, RunResources, Tools } from '../../shared/engine/resources.ts'
import { run as runEngine } from '../../shared/engine/run.ts'
import type { AgentEvent, WarningEvent } from '../../shared/events.ts'
import type { TenantId } from '../../shared/tenant.ts'
import type { ToolServices } from '../../shared/tools/port.ts'
import type { ModelSource } from '../runs/models.ts'
import type { Run } from '../runs/run.ts'

/** The resources that all runs of a worker share. */
export type EngineOptions = {
  models: ModelSource
  tools: Pick<Tools, 'toolBox' | 'canAct' | 'mayAct' | 'maxOutputChars'>
  openAskFor(run: Run): OpenAsk
  workspaceOf(run: Run): string
  onToolBug(run: Run, toolName: string, cause: unknown): void
  /** Default of `max_turns`. */
  maxTurns: number
}

/** The state that a run starts from, besides its request. */
export type RunStart = {
  conversation: Conversation
  background: string | undefined
  services: ToolServices
  warnings: readonly WarningEvent[]
}

/** A request that can be run: its model is known, its defaults are filled in. */
export type PreparedRun = {
  prompt: string
  /** Starts the engine. A session passes its history as it is at that moment, with the answers to all earlier messages. */
  execute(run: Run, start: RunStart): AsyncIterable<AgentEvent>
}

/** Prepares a request of a tenant whose models are loaded. Throws `unavailable` when there is no model for it. */
export type PrepareRun = (tenant: TenantId, request: RunRequest) => PreparedRun

/** One engine for one-shot runs and sessions: they differ only in the state they start from (D5.7). */
export function createPrepareRun(options: EngineOptions): PrepareRun {
  return (tenant, request) => {
    const models = options.models.modelsFor(tenant, request.model)
    const { prompt } = request
    const settings = {
      prompt,
      systemPrompt: request.system_prompt,
      maxTurns: request.max_turns ?? options.maxTurns,
      stopSequences: request.stop_sequences ?? [],
    }
    return {
      prompt,
      execute: (run, { services, ...start }) =>
        runEngine({ ...settings, ...start }, resourcesOf(run, { models, services }, options)),
    }
  }
}

function resourcesOf(
  run: Run,
  { models, services }: { models: Models; services: ToolServices },
  { tools, openAskFor, workspaceOf, onToolBug }: EngineOptions,
): RunResources {
  return {
    models,
    tools: {
      ...tools,
      services,
      workspace: () => workspaceOf(run),
      onToolBug: (toolName, cause) => onToolBug(run, toolName, cause),
    },
    permissions: { openAsk: openAskFor(run) },
    signal: run.signal,
  }
}
