import type { AttackPlan, Size } from './attack.ts'
import { DEAD_RECEIVERS } from './attacks/dead-receivers.ts'
import { HANGING_ATTACKS } from './attacks/hanging.ts'
import { HANGING_UPLOADS } from './attacks/hanging-uploads.ts'
import { LARGE_ANSWERS } from './attacks/large-answers.ts'
import { PLANS } from './attacks/plans.ts'
import { RUN_ATTACKS } from './attacks/runs.ts'
import { SLOW_CHECKS } from './attacks/slow-checks.ts'

/**
 * Everything that one tenant does to take the house. In the short form every second one is made in the cluster, the others in the
 * standalone form. The last one uses up the requests that a tenant may make in a minute.
 */
export const ATTACKS: readonly AttackPlan[] = [
  ...HANGING_ATTACKS,
  LARGE_ANSWERS,
  DEAD_RECEIVERS,
  PLANS,
  HANGING_UPLOADS,
  SLOW_CHECKS,
  ...RUN_ATTACKS,
]

/** The same in both forms. */
const COMMON = {
  RUNS_PER_WORKER: '64',
  SESSIONS_PER_WORKER: '40',
  SCHEDULE_LEAST_SECS: '1',
  UPLOADS_PER_GATEWAY: '8',
  UPLOAD_SPOOL_MB: '480',
  TRUST_PROXY: '1',
  RUN_RESUME_SECS: '300', // Longer than an attack takes on a busy machine: then the events are still those of the run itself.
}

/** Settings under which an attack is small. One tenant has half of each. */
export const LIMITS: Record<Size, Readonly<Record<string, string>>> = {
  short: { ...COMMON, SESSION_MEMORY_MB: '2', PLAN_MB_PER_TENANT: '16', RATE_LIMIT_RPM: '1000' },
  full: { ...COMMON, SESSION_MEMORY_MB: '4', PLAN_MB_PER_TENANT: '64', RATE_LIMIT_RPM: '2000' },
}
