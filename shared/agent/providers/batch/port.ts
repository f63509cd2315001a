import type { JsonObject } from '../../../kernel/events.ts'

/** A model call as it goes into a vendor's batch: what would be sent to `path` below the vendor's base, without its wish for a stream. */
export type BatchCall = { id: string; path: string; body: JsonObject }

/** The vendor's answer to a call. `GOES_LIVE`: there is none, and never will be. */
export type BatchAnswer = { status: number; body: JsonObject }

export const GOES_LIVE: BatchAnswer = { status: 0, body: {} }

/**
 * A vendor's batch endpoints. Ids of calls are ours, and unique in a batch: 1 to 64 letters, digits, `_` and `-`. Every method throws `upstream` when the vendor
 * refuses, and something else when it is not known what the vendor has done.
 */
export interface VendorBatches {
  /** Sends calls. Returns the vendor's id. `mark` is what `find` finds them by, where the vendor keeps such a text. */
  submit(calls: readonly BatchCall[], mark: string): Promise<string>
  /**
   * The vendor's id of the batch that was submitted with this mark: `undefined` when there is none. `'unknown'`: the vendor keeps no mark, so that a submission whose
   * answer was lost cannot be told from none.
   */
  find(mark: string): Promise<{ id: string } | undefined | 'unknown'>
  /** `undefined` while it goes on. Calls without an answer, as in a batch that has expired or was cancelled, are missing. */
  read(id: string): Promise<ReadonlyMap<string, BatchAnswer> | undefined>
  cancel(id: string): Promise<void>
}
