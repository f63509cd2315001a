import { field, optional, or } from './field.ts'
import { integer, megabytes, oneOf, path, seconds } from './values.ts'

const COUNT = 1_000_000
const DAY_SECS = 86_400
/** An upload has at most 320 MB, and one tenant may use at most two thirds of the spool. */
const LEAST_SPOOL_MB = 480
/** The steps of a plan have at most 8 MB. */
const LEAST_PLAN_MB = 8

/** How much work one process accepts at a time, and how much it keeps in memory and on its disk. */
export const CAPACITY_FIELDS = {
  sessionsPerWorker: field('SESSIONS_PER_WORKER', or(integer(1, COUNT), '10000'), 'Sessions that one worker holds.'),
  sessionsPerTenant: field(
    'SESSIONS_PER_TENANT',
    or(integer(0, COUNT), '0'),
    'Sessions that one tenant holds on one worker; 0 for half of SESSIONS_PER_WORKER with OIDC_ISSUER, else for all of them.',
  ),
  sessionMemoryBytes: field(
    'SESSION_MEMORY_MB',
    or(megabytes(1, COUNT), '256'),
    'MB that the conversations of one worker hold; one tenant may hold half of it with OIDC_ISSUER, else all.',
  ),
  sessionIdleMs: field('SESSION_IDLE_SECS', or(seconds(1), '3600'), 'Seconds after which an idle session is removed.'),
  durability: field(
    'DURABILITY',
    or(oneOf('off', 'sessions', 'runs'), 'off'),
    'What outlives the death of a worker: `sessions` stores each turn of a session before its run ends; with `runs` the runs of its messages go on at another worker, too; `off` keeps sessions in memory. Set the same for all processes.',
  ),
  runsPerWorker: field('RUNS_PER_WORKER', or(integer(1, COUNT), '256'), 'Runs that one worker executes at a time.'),
  runsPerTenant: field(
    'RUNS_PER_TENANT',
    or(integer(0, COUNT), '0'),
    'Runs of one tenant that one worker executes, and its share of the flows of an executor; 0 for half of RUNS_PER_WORKER with OIDC_ISSUER, else for all of them.',
  ),
  plansPerTenant: field(
    'PLANS_PER_TENANT',
    or(integer(1, COUNT), '5000'),
    'Plans of one tenant that wait or run; further ones are refused.',
  ),
  planBytesPerTenant: field(
    'PLAN_MB_PER_TENANT',
    or(megabytes(LEAST_PLAN_MB, COUNT), '256'),
    'MB that the steps of these plans may have together.',
  ),
  scheduleLeastSecs: field(
    'SCHEDULE_LEAST_SECS',
    or(integer(1, DAY_SECS), '10'),
    'Least seconds between two ticks of a schedule; those that were stored with less are slowed down.',
  ),
  customerEngines: field(
    'CUSTOMER_ENGINES',
    or(integer(1, COUNT), '256'),
    'Customers that one worker keeps in memory.',
  ),
  customerIdleMs: field(
    'CUSTOMER_IDLE_SECS',
    or(seconds(-COUNT), '1800'),
    'Seconds after which an idle customer leaves memory; negative for never.',
  ),
  customerHistoryEntries: field(
    'CUSTOMER_HISTORY_ENTRIES',
    or(integer(0, 10_000), '10'),
    "Earlier runs of a customer that are put before its next run's prompt.",
  ),
  customerHistoryChars: field(
    'CUSTOMER_HISTORY_CHARS',
    or(integer(0, COUNT), '4000'),
    'Characters of these earlier runs that are put there at most.',
  ),
  tenantLimits: field(
    'TENANT_LIMITS',
    optional(path),
    'JSON file of the most that PUT /config/limits may set: {"*": {"usd_per_day": 25}, "<tenant>": {...}}; read again when it changes.',
  ),
  uploadsPerGateway: field(
    'UPLOADS_PER_GATEWAY',
    or(integer(1, COUNT), '64'),
    'Uploads that one gateway handles at a time; others wait up to 30 s for their turn.',
  ),
  uploadSpoolBytes: field(
    'UPLOAD_SPOOL_MB',
    or(megabytes(LEAST_SPOOL_MB, COUNT), '8192'),
    'MB that the files of these uploads may take of the disk below DATA_DIR; a third is kept for tenants that have less than their share.',
  ),
}
