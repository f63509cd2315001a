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
  /** Takes over a turn when the primary model fails before the client has seen any of it (D5.5). */
  fallback: ModelRoute | undefined
  /** Which of the two a run calls first; `order` by default. */
  strategy?: Strategy | undefined
  /** A second request may be sent when the first is late (D56). */
  hedge?: boolean | undefined
}

/**
 * The models that a run calls, by purpose, with the known prices and context windows. A route is read at the
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

export type ModelPurpose = 'main' | 'subAgents' | 'summaries'

/** Models that change the routes of others. A class, because each run has several of them. */
export abstract class ModelsOfRoutes implements Models {
  readonly #models: Models
  readonly priceOf: PriceOf
  readonly windowOf: WindowOf

  constructor(models: Models) {
    this.#models = models
    this.priceOf = models.priceOf
    this.windowOf = models.windowOf
  }

  protected abstract routeFor(purpose: ModelPurpose, route: Route): Route

  main(): Route {
    return this.routeFor('main', this.#models.main())
  }

  subAgents(): Route {
    return this.routeFor('subAgents', this.#models.subAgents())
  }

  summaries(): Route {
    return this.routeFor('summaries', this.#models.summaries())
  }
}

/** The same models, called for this caller. */
export const calledBy = (models: Models, caller: Caller): Models => new CalledModels(models, caller)

class CalledModels extends ModelsOfRoutes {
  readonly #caller: Caller

  constructor(models: Models, caller: Caller) {
    super(models)
    this.#caller = caller
  }

  protected override routeFor(_purpose: ModelPurpose, route: Route): Route {
    const caller = this.#caller
    const { primary, fallback } = route
    return { ...route, primary: { ...primary, caller }, fallback: fallback && { ...fallback, caller } }
  }
}

/** The models of a sub-agent, whose own sub-agents are called like it. */
export const modelsOfSubAgent = (models: Models): Models => ({
  main: () => models.subAgents(),
  subAgents: () => models.subAgents(),
  summaries: () => models.summaries(),
  priceOf: models.priceOf,
  windowOf: models.windowOf,
})

/** The tools that a run may call, and what they need. */
export type Tools = {
  toolBox: ToolBox
  services: ToolServices
  owner: ToolOwner
  /** Returns the path of the run's folder. It is called when the first tool is about to start, and never for a run without tool calls. */
  workspace: () => string
  /** Called before a tool that uses files starts, if the files may not be on this machine yet. Throws `unavailable`. */
  bringFiles?: (() => Promise<void>) | undefined
  /**
   * Called after a tool that may have changed files, if the run or its session may continue on another machine. Resolves when they are stored,
   * with the files that could not be stored (D35.2c).
   */
  storeFiles?: (() => Promise<readonly UnstoredFile[]>) | undefined
  /** Longer tool outputs are cut to this many characters. */
  maxOutputChars: number
  /**
   * Called right before each tool starts. Resolves to true once this process may act for the run, which may take as long as
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
  /** Stores the beginning of tool calls. Left out: the run ends with its process. */
  progress?: CallProgress | undefined
  /** Left out: nobody can send texts to the run while it is running. */
  steering?: Steering | undefined
}
