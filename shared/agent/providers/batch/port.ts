import type { JsonObject } from '../../../kernel/events.ts'

/** A model call as it goes into a vendor's batch: what would be sent to `path` below the vendor's base, without its wish for a stream. */
export type BatchCall = { id: string; path: string; body: JsonObject }

/** The vendor's answer to a call. `GOES_LIVE`: there is none, and never will be. */
export type BatchAnswer = { status: number; body: JsonObject }

export const GOES_LIVE: BatchAnswer = { status: 0, body: {} }

/** A submission whose answer was lost: of `count` calls, the first of which has the id `first`. */
export type Submission = { mark: string; count: number; first: string; at_ms: number }

/**
 * A vendor's batch endpoints. Ids of calls are ours, and unique in a batch: 1 to 64 letters, digits, `_` and `-`. Every method throws `invalid_request` when the vendor
 * refuses what is sent, `upstream` when it refuses for another reason, `not_found` when there is no such thing, `rate_limit` when it takes no more for now, and something else when it is not known what the vendor has done.
 */
export interface VendorBatches {
  /** Sends calls. Returns the vendor's id. `mark` is what `find` finds them by, where the vendor keeps such a text. */
  submit(calls: readonly BatchCall[], mark: string): Promise<string>
  /** The vendor's id of the batch that it has made of a submission: `undefined` when there is none. `'unsure'`: a later look tells. */
  find(sent: Submission): Promise<{ id: string } | undefined | 'unsure'>
  /**
   * `undefined` while it goes on. Calls without an answer, as in a batch that has expired or was cancelled, are missing. `'refused'`: the vendor has had no room for
   * the batch, and has answered none of it.
   */
  read(id: string): Promise<ReadonlyMap<string, BatchAnswer> | undefined | 'refused'>
  cancel(id: string): Promise<void>
}
