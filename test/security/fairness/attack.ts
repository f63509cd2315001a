import type { ModelServer } from '../../support/model-server/model-server.ts'

export type Tenant = { url: string; headers: Record<string, string> }

/** How long the work of a tenant took, and what was not answered as it should. */
export type Measured = { runMs: number[]; refusals: string[] }

export type Form = 'standalone' | 'cluster'

/** How much an attack takes: in the short form hardly more than exhausts what it attacks. */
export type Size = 'short' | 'full'

/** What an attack can use besides the API. `model` answers the instance `main` of both tenants. */
export type Surroundings = { form: Form; model: ModelServer; size: Size }

/** An attack that is under way. `refused` says how often the server has set a limit to it so far. */
export type Attack = { refused(): number; end(): void | Promise<void> }

/** Uses the service as the other tenant, this many times in a row with each of a few clients. */
export type Use = (rounds: number) => Promise<Measured>

/** A resource that a tenant can take too much of, and the use of the service by the other tenant that would suffer. */
export type AttackPlan = {
  title: string
  begin(hostile: Tenant, surroundings: Surroundings): Promise<Attack>
  /** Prepares what the other tenant does before the attack and under it: by default it sends messages and runs. */
  prepare?(other: Tenant): Promise<Use>
  /** The server shares the resource without refusing anything. */
  isShared?: boolean
}
