import type { Health } from '../../../kernel/health.ts'
import { storeUnavailable } from '../unavailable.ts'

/** Runs a statement. Throws `unavailable` when the file or the disk refuses it; any other failure is a bug and is thrown unchanged. */
export type OperationGuard = <T>(operation: () => T) => T

/** SQLite's result codes for a file that is locked, missing, full, read-only or damaged. */
const UNAVAILABLE_CODES = new Set([5, 6, 8, 10, 11, 13, 14, 26])
const UNIQUE_VIOLATION = 2067

export function createOperationGuard(health: Health): OperationGuard {
  return (operation) => {
    try {
      const result = operation()
      health.answered()
      return result
    } catch (cause) {
      // The low byte is the primary code; the other bytes give details.
      if (!UNAVAILABLE_CODES.has(codeOf(cause) & 0xff)) throw cause
      health.failed()
      throw storeUnavailable(cause)
    }
  }
}

export const isDuplicate = (cause: unknown): boolean => codeOf(cause) === UNIQUE_VIOLATION

const codeOf = (cause: unknown): number =>
  cause instanceof Error && 'errcode' in cause && typeof cause.errcode === 'number' ? cause.errcode : 0
