import type { AttachedFile } from '../../kernel/attachment.ts'
import type { PageRequest } from '../../kernel/cursor.ts'
import type { ApiType } from '../../platform/api/api-type.ts'

/**
 * Body of `POST /agent/run`, checked, without the fields that no run reads. `messages` is the history that a dialect without sessions sends
 * with each request (D31). With `ends_with_calls` the run ends with its client's calls; if `prompt` is empty it begins with the results at the
 * end of the history (D45.6).
 */
export type RunRequest = Omit<ApiType<'RunRequest'>, 'stream' | 'tools' | 'provider_instance'> & {
  messages?: readonly SeedMessage[]
  ends_with_calls?: boolean
} & WithFiles

/** A request whose `attachments` the gateway has turned into files of the tenant (D47). */
export type WithFiles = { files?: AttachedFile[] }

/** A message of a new conversation's history, and the id that its client has given it. */
export type SeedMessage = ApiType<'SeedMessage'> & { client?: string } & WithFiles

export const RUN_STATUSES = ['running', 'waiting', 'done', 'failed', 'cancelled'] as const
export type RunStatus = ApiType<'RunStatus'>

/**
 * The priority of a run and its model calls, unless its request names one: first if a client waits for the answer, last if it has a deadline.
 */
export const priorityOf = ({ background, deadline_hours: hours, priority }: RunRequest): ApiType<'Priority'> =>
  priority ?? (hours !== undefined ? 'batch' : background ? 'normal' : 'interactive')

/** `GET /runs/{run_id}` (D4.5g). */
export type RunSummary = ApiType<'Run'>

/** Whether the process of the run died, so that the run's progress is unknown (D20.4). */
export const isLost = ({ code, event_count }: RunSummary): boolean => code === 'worker_lost' && event_count === 0

/** `incomplete`: the runs of a worker that did not answer are missing. */
export type RunPage = { runs: RunSummary[]; next_cursor: string | null; incomplete?: true }
/** `among` the runs that have not ended (`live`), or those that have and whose record is not stored (`unrecorded`); all by default. */
export type RunFilter = PageRequest & { status?: RunStatus; among?: 'live' | 'unrecorded' }

/** The further filters of `GET /runs` where runs are recorded (D20). Times are in ISO 8601. */
export type RunSearch = {
  kind?: NonNullable<RunSummary['kind']>
  code?: NonNullable<RunSummary['code']>
  session_id?: string
  customer_id?: string
  subject?: string
  model?: string
  flow?: string
  /** Each of these pairs. */
  metadata?: Readonly<Record<string, string>>
  /** The earliest start. */
  since?: string
  /** All starts are before it. */
  until?: string
  /** The least US dollars. */
  min_cost?: number
  /** For runs that have ended: the shortest and the longest time from start to end. */
  min_ms?: number
  max_ms?: number
  /** A text in one of the names, whatever its case. */
  q?: string
}

/**
 * A stream at the gateway of this epoch that waits for a queued run; the executor sends the frames there without a request. `readsEnd`: the frames
 * are only needed when the run has ended, so those of a short run are sent together. `comesBack`: the client follows the run with another request,
 * which another gateway may get, so the other gateways get a start notice.
 */
export type RunReader = { gateway: number; stream: number; readsEnd?: boolean; comesBack?: boolean }
