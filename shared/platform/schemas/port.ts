import type { JsonObject } from '../../kernel/events.ts'
import type { TenantId } from '../../kernel/tenant.ts'

/** A problem and its place: `path` is a JSON pointer into the checked value or schema, empty for the whole. */
export type SchemaProblem = { path: string; message: string }

/** `at` is the index of the schema. `isSlow`: it did not compile in time and has used up the limit; later schemas were not checked. */
export type UnusableSchema = { at: number; problem: SchemaProblem; isSlow?: boolean }

/**
 * Checks values against untrusted JSON Schemas: those of tenants' flows and MCP servers' tools. A schema must fit a budget, its
 * patterns run in linear time, and compiling and checking happen in threads that are ended after 140 ms of CPU time, so that no schema and no
 * value can stop the event loop. The tenants take turns.
 */
export interface SchemaCheckers {
  /** The checker for a tenant, whose share of the threads it uses. */
  of(tenant: TenantId): SchemaChecker
  close(): Promise<void>
}

/** Both methods throw `rate_limit` while the tenant uses its share of the waiting checks, and `unavailable` while too many checks wait. */
export interface SchemaChecker {
  /**
   * Says which of the schemas, by their indexes, cannot be used, why, and what to do; empty when all can. One time limit applies to all of
   * them together: 110 ms of CPU time, and 140 ms for schemas that were accepted before, which may compile more slowly on a busy machine.
   * Schemas after one that does not compile in time are not checked. Throws `unavailable` when accepted schemas do not compile
   * in time now.
   */
  findUnusable(
    schemas: readonly JsonObject[],
    options?: { wereAccepted?: boolean | undefined },
  ): Promise<readonly UnusableSchema[]>
  /**
   * At most ten problems of a value, the first ones; empty when the value is valid. A value that cannot be checked in time has one
   * problem that says so. Throws `invalid_request` for a schema that cannot be used, and `unavailable` for one that does not
   * compile in time now.
   */
  check(schema: JsonObject, value: unknown): Promise<readonly SchemaProblem[]>
}
