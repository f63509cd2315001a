import type { JsonObject } from '../../../kernel/events.ts'

/** A model call in the form for a vendor's batch: the request for `path` below the vendor's base, without the field that asks for a stream. */
export type BatchCall = { id: string; path: string; body: JsonObject }

/** The vendor's answer to a call. `GOES_LIVE`: there will be no answer, so the call is sent live. */
export type BatchAnswer = { status: number; body: JsonObject }

export const GOES_LIVE: BatchAnswer = { status: 0, body: {} }

/** A submission of `count` calls, the first of which has the id `first`. `find` looks for it when the vendor's answer was lost. */
export type Submission = { mark: string; count: number; first: string; at_ms: number }

/**
 * A vendor's batch endpoints. Ids of calls are ours, and unique in a batch: 1 to 64 letters, digits, `_` and `-`. Every method throws `invalid_request` when the vendor
 * refuses what is sent, `upstream` when it refuses for another reason, `not_found` for an unknown batch, `rate_limit` when it accepts no more for
 * now, and another error when the outcome is unknown.
 */
export interface VendorBatches {
  /** Sends calls. Returns the vendor's id. `mark` is the text by which `find` recognizes them, if the vendor keeps one. */
  submit(calls: readonly BatchCall[], mark: string): Promise<string>
  /** The vendor's id of the batch for a submission; `undefined` when there is none. `'unsure'`: only a later look can decide. */
  find(sent: Submission): Promise<{ id: string } | undefined | 'unsure'>
  /**
   * The answers of a batch; `undefined` while it is running. Calls without an answer, as in a batch that has expired or was cancelled, are missing.
   * `'refused'`: the vendor has had no room for the batch, and has answered none of it.
   */
  read(id: string): Promise<ReadonlyMap<string, BatchAnswer> | undefined | 'refused'>
  cancel(id: string): Promise<void>
}
