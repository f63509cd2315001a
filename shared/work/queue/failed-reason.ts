const MAX_CHARS = 200

/** The reason that is listed for a job whose handler threw. The error itself may hold anything, and goes to the log only. */
export const HANDLER_FAILED = 'the job failed: see the log'

/** A reason as it is listed: one line of at most 200 characters. */
export const failedReason = (reason: string): string => reason.replaceAll(/[\p{Cc}\s]+/gu, ' ').slice(0, MAX_CHARS)
