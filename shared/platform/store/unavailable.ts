import { AppError } from '../../kernel/errors.ts'

const RETRY_SECS = 2

/** The error for a database that does not answer. `cause` is for our own log; callers never see it. */
export const storeUnavailable = (cause: unknown): AppError =>
  new AppError('unavailable', 'the store cannot be reached at the moment; try again', {
    code: 'storage_unavailable',
    retryAfterSecs: RETRY_SECS,
    cause,
  })

/** Whether a request was refused because the store did not answer. */
export const isStoreUnavailable = (cause: unknown): boolean =>
  cause instanceof AppError && cause.code === 'storage_unavailable'
