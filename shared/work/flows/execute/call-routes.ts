import { type ErrorEvent, type RunErrorCode, type WarningEvent } from '../../../kernel/events.ts'
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
