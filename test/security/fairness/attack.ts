import type { ModelServer } from '../../support/model-server/model-server.ts'
import type { Measured, Tenant } from './neighbour.ts'

export type Form = 'standalone' | 'cluster'

/** What an attack can use besides the API. `model` answers the instance `main` of both tenants. */
export type Surroundings = { form: Form; model: ModelServer }

/** An attack that is under way. `refused` says how often the server has set a limit to it so far. */
export type Attack = { refused(): number; end(): void | Promise<void> }

/** A resource that a tenant can take too much of, and the use of the service by the other tenant that would suffer. */
export type AttackPlan = {
  title: string
  begin(hostile: Tenant, surroundings: Surroundings): Promise<Attack>
  /** What the other tenant does before the attack and under it: by default it sends messages and runs. */
  use?(other: Tenant, rounds: number): Promise<Measured>
  /** The server shares the resource without refusing anything. */
  isShared?: boolean
}
