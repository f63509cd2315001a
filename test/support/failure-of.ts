import { expect } from 'chai'
import type { AppError } from '../../shared/kernel/errors.ts'

/** What the work fails with. */
export const failureOf = <Failure = AppError>(work: Promise<unknown>): Promise<Failure> =>
  work.then(
    () => expect.fail('it has not failed'),
    (cause: unknown) => cause as Failure,
  )
