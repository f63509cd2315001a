import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import type { Durability } from '../port.ts'
import { isDuplicate, type OperationGuard } from './guard.ts'
import { transact } from './transact.ts'
import type { WriteGroup } from './write-group.ts'

export type StatementParts = { db: DatabaseSync; guard: OperationGuard; writes: Pick<WriteGroup, 'add'> }

/** Runs the statements of a collection, on this thread. */
export class Statements {
  readonly #parts: StatementParts
  /** Prepared statements by their SQL; bounded by the number of different queries in the code. */
  readonly #prepared = new Map<string, StatementSync>()

  constructor(parts: StatementParts) {
    this.#parts = parts
  }

  inTransaction<T>(act: () => T): T {
    const { db, guard } = this.#parts
    return guard(() => transact(db, act))
  }

  /** Whether the statement has changed a document, or several. One that would violate a unique index changes none. */
  changes(sql: string, parameters: SQLInputValue[]): boolean {
    try {
      return this.run(sql, parameters) > 0
    } catch (cause) {
      if (isDuplicate(cause)) return false
      throw cause
    }
  }

  /** Returns how many documents the statement has changed. */
  run(sql: string, parameters: SQLInputValue[]): number {
    return this.#parts.guard(() => Number(this.#prepare(sql).run(...parameters).changes))
  }

  all<Row>(sql: string, parameters: SQLInputValue[]): Row[] {
    return this.#parts.guard(() => this.#prepare(sql).all(...parameters)) as Row[]
  }

  /**
   * Runs the statements of `write`, now or together with those of other writes. With the durability `full` it resolves when they are on the disk, unless the
   * result says that nothing was written; without it they run at once.
   */
  async write<T>(durability: Durability, write: () => T): Promise<T> {
    return durability === 'full' ? this.#parts.writes.add(write) : write()
  }

  #prepare(sql: string): StatementSync {
    const statement = this.#prepared.get(sql) ?? this.#parts.db.prepare(sql)
    this.#prepared.set(sql, statement)
    return statement
  }
}
