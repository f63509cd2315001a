import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { storeUnavailable } from '../unavailable.ts'
import { isDuplicate, type OperationGuard } from './guard.ts'
import { transact } from './transact.ts'

export type StatementParts = { db: DatabaseSync; guard: OperationGuard; flush: () => Promise<void> }

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

  /** Whether the statement has changed a document. One that would violate a unique index changes none. */
  changesOne(sql: string, parameters: SQLInputValue[]): boolean {
    try {
      return this.run(sql, parameters) === 1
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

  /** Returns `isWritten`; waits before that until the write is on the disk. */
  async flushIf(isWritten: boolean): Promise<boolean> {
    if (!isWritten) return false
    try {
      await this.#parts.flush()
      return true
    } catch (cause) {
      throw storeUnavailable(cause)
    }
  }

  #prepare(sql: string): StatementSync {
    const statement = this.#prepared.get(sql) ?? this.#parts.db.prepare(sql)
    this.#prepared.set(sql, statement)
    return statement
  }
}
