import type { Health } from '../../health.ts'
import { storeUnavailable } from '../unavailable.ts'

/** SQLite's result codes for a file that is locked, gone, full, read-only or broken. */
const AWAY = new Set([5, 6, 8, 10, 11, 13, 14, 26])
const UNIQUE = 2067

export type Guard = <T>(act: () => T) => T

/** Runs a statement: what the file or the disk refuses is `unavailable`, anything else a bug. */
export function createGuard(health: Health): Guard {
  return (act) => {
    try {
      const result = act()
      health.answered()
      return result
    } catch (cause) {
      if (!AWAY.has(codeOf(cause) & 0xff)) throw cause
      health.failed()
      throw storeUnavailable(cause)
    }
  }
}

export const isDuplicate = (cause: unknown): boolean => codeOf(cause) === UNIQUE

const codeOf = (cause: unknown): number =>
  cause instanceof Error && 'errcode' in cause && typeof cause.errcode === 'number' ? cause.errcode : 0
