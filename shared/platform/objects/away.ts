import { AppError } from '../../kernel/errors.ts'

export const away = (cause: unknown): AppError =>
  new AppError('unavailable', 'the files cannot be reached at the moment; try again', { retryAfterSecs: 2, cause })

/** Throws `unavailable` for each failure of `attempt`. */
export async function orAway<T>(attempt: () => Promise<T>): Promise<T> {
  try {
    return await attempt()
  } catch (cause) {
    throw away(cause)
  }
}
