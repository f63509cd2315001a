import type { NativeForm } from '../../../agent/engine/answers/typed-answer.ts'
import type { ErrorEvent, RunErrorCode, WarningEvent } from '../../../kernel/events.ts'
import { quoted } from '../../../kernel/text.ts'
import type { FlowRoute, SubAgentDefinition } from '../port.ts'

/** The route of an agent's requests. `canSwitch`: a failure of the provider moves the agent to the fallback. */
export type AgentRoute = { route: FlowRoute; canSwitch: boolean }

/** Failures of the provider. Running out of credit is one too; its code is `provider_rejected`. */
const SWITCHING: ReadonlySet<RunErrorCode> = new Set([
  'provider_auth',
  'provider_rate_limited',
  'provider_unavailable',
  'timeout',
])

/** Whether the fallback may help after this failure (api.md "Named flows" 6). */
export const isProviderFailure = ({ code, detail }: Pick<ErrorEvent, 'code' | 'detail'>): boolean =>
  SWITCHING.has(code) || detail === 'out_of_credit'

/** Chooses the instance and model of each agent. A call switches to its fallback at most once, and never back. */
export class CallRoutes {
  readonly fallback: FlowRoute | null
  readonly #primary: FlowRoute
  #isSwitched = false

  constructor(primary: FlowRoute, fallback: FlowRoute | null) {
    this.#primary = primary
    this.fallback = fallback
  }

  /** `agent` is a sub-agent's definition, or `undefined` for the main agent. An agent with its own instance never switches. */
  routeOf(agent: Pick<SubAgentDefinition, 'provider_instance' | 'model'> | undefined): AgentRoute {
    const model = agent?.model ?? this.#primary.model
    const instance = agent?.provider_instance
    if (instance !== undefined) return { route: { instance, model }, canSwitch: false }
    if (this.#isSwitched && this.fallback) return { route: this.fallback, canSwitch: false }
    return { route: { instance: this.#primary.instance, model }, canSwitch: this.fallback !== null }
  }

  /** Moves the call to its fallback. Returns the warning that announces it, only for the first agent. */
  switchAfter(route: FlowRoute, { error, detail }: Pick<ErrorEvent, 'error' | 'detail'>): WarningEvent | undefined {
    if (this.#isSwitched || !this.fallback) return undefined
    this.#isSwitched = true
    const { instance, model } = this.fallback
    return {
      type: 'warning',
      code: 'provider_failover',
      message: `${error}; ${quoted(model)} of ${instance} takes the call`,
      detail: { from: route, to: this.fallback, reason: detail },
    }
  }
}

/** Reads the stored probe of a model; `undefined` when none is stored. */
export type SupportsStructuredOutput = (instance: string, model: string) => Promise<boolean | undefined>

/** Decides for one call for which models the provider's own feature for structured output is used. */
export class StructuredOutputs {
  readonly #supports: SupportsStructuredOutput
  readonly #known = new Map<string, Promise<boolean>>()

  constructor(supports: SupportsStructuredOutput) {
    this.#supports = supports
  }

  /** It is not used if the model is known not to have the feature, or the provider has rejected it in this call. */
  of(route: FlowRoute): NativeForm {
    const key = keyOf(route)
    return {
      isUsed: () => {
        const known = this.#known.get(key) ?? this.#ask(route.instance, route.model)
        this.#known.set(key, known)
        return known
      },
      refuse: () => void this.#known.set(key, Promise.resolve(false)),
    }
  }

  /** Without an answer from the store the feature is tried: a rejection costs one request. */
  async #ask(instance: string, model: string): Promise<boolean> {
    return (await this.#supports(instance, model).catch(() => undefined)) !== false
  }
}

/** A name of an instance holds no blank. */
const keyOf = ({ instance, model }: FlowRoute): string => `${instance} ${model}`
