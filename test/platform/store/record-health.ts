import type { Health } from '../../../shared/kernel/health.ts'

/** Records what a guard reports about the database. */
export function recordHealth(awayMs = 0) {
  const reports: string[] = []
  const health: Health = {
    answered: () => void reports.push('answered'),
    failed: () => void reports.push('failed'),
    awayMs: () => awayMs,
  }
  return { reports, health }
}
