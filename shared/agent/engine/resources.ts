import type { Caller, ModelRoute, PriceOf, WindowOf } from '../providers/port.ts'
import type { ReadFile } from '../providers/shown-files.ts'
import type { Strategy } from '../providers/strategy.ts'
import type { ToolBox, ToolOwner, ToolServices } from '../tools/port.ts'
import type { CallProgress, UnstoredFile } from './call-progress.ts'
import type { Steering } from './messages/steering.ts'
import type { Permissions } from './permissions.ts'

/** The model of a turn, and the one that may replace it. */
export type Route = {
  primary: ModelRoute
  /** Takes over a turn of which the client has seen nothing when the primary model fails (D5.5). */
  fallback: ModelRoute | undefined
  /** Which of the two a run calls first; `order` unless it says. */
  strategy?: Strategy | undefined
  /** A second request may be sent when the first is late (D56). */
  hedge?: boolean | undefined
}

/**
 * The models that a run calls, by what they are for, and what is known of their prices and context windows. A route is read at the
 * start of each turn, so that a changed configuration applies to the next one (D8.5).
 */
export type Models = {
  main(): Route
  /** For the sub-agents that the run starts. */
  subAgents(): Route
  /** For the summaries that compaction makes. */
  summaries(): Route
  priceOf: PriceOf
  windowOf: WindowOf
}

/** The same models, called for this caller. */
export function calledBy(models: Models, caller: Caller): Models {
  const called = (route: Route): Route => ({
    ...route,
    primary: { ...route.primary, caller },
    fallback: route.fallback && { ...route.fallback, caller },
  })
  return {
    ...models,
    main: () => called(models.main()),
    subAgents: () => called(models.subAgents()),
    summaries: () => called(models.summaries()),
  }
}

/** The tools that a run may call, and what they need. */
export type Tools = {
  toolBox: ToolBox
  services: ToolServices
  owner: ToolOwner
  /** Returns the path of the run's folder. It is called when a tool is about to start: never for a run without tool calls. */
  workspace: () => string
  /** Called before a tool that uses files starts, where they are not on this machine yet. Throws `unavailable`. */
  bringFiles?: (() => Promise<void>) | undefined
  /**
   * Called after a tool that may have changed files, where the run or its session may go on at another machine: resolves when they are stored, or
   * with those that are not (D35.2c).
   */
  storeFiles?: (() => Promise<readonly UnstoredFile[]>) | undefined
  /** Longer tool outputs are cut to this many characters. */
  maxOutputChars: number
  /**
   * Called right before each tool starts. Resolves to true once this process may act for the run, which can take as long as
   * its lease is in doubt (shared/cluster/README.md "Membership and leases"), and to false when the run has ended.
   */
  canAct(signal: AbortSignal): Promise<boolean>
  /** Whether this process may act at this moment. Tools read it again right before each effect. */
  mayAct(): boolean
  /** Called when a tool has thrown, which is a bug of the tool. */
  onToolBug(toolName: string, cause: unknown): void
}

/** Everything that a run uses of its process. The reason that `signal` is aborted with is a `RunErrorCode`. */
export type RunResources = {
  models: Models
  tools: Tools
  permissions: Permissions
  signal: AbortSignal
  /** Reads the files of messages. Left out: this server keeps no files. */
  readFile?: ReadFile | undefined
  /** Stores that tool calls begin. Left out: the run ends with its process. */
  progress?: CallProgress | undefined
  /** Left out: nobody can tell the run anything while it is at work. */
  steering?: Steering | undefined
}
