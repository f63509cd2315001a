import { AppError } from '../../kernel/errors.ts'

const RETRY_SECS = 2

/** The error for a database that does not answer. `cause` is for our own log; callers never see it. */
export const storeUnavailable = (cause: unknown): AppError =>
  new AppError('unavailable', 'the store cannot be reached at the moment; try again', {
    retryAfterSecs: RETRY_SECS,
    cause,
  })
