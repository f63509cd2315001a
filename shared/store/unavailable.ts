import { AppError } from '../errors.ts'

const RETRY_SECS = 2

/** What a caller learns when the database does not answer; `cause` is for our own log only. */
export const storeUnavailable = (cause: unknown): AppError =>
  new AppError('unavailable', 'the store cannot be reached at the moment; try again', {
    retryAfterSecs: RETRY_SECS,
    cause,
  })
