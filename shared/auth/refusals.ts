import { AppError } from '../errors.ts'

/** Why a token is refused. It stands in the error's `cause`, for logs and tests; the caller sees what `MESSAGES` makes of it. */
export type Refusal =
  | 'too_long'
  | 'malformed'
  | 'algorithm'
  | 'critical'
  | 'type'
  | 'key'
  | 'signature'
  | 'issuer'
  | 'audience'
  | 'times'
  | 'expired'
  | 'not_yet'
  | 'tenant'

const NEW_TOKEN = 'get a new one from your identity provider'

/** What the holder of a properly signed token may know; how a signature failed helps forgers only. */
const MESSAGES: Partial<Record<Refusal, string>> = {
  too_long: 'the token is longer than 8192 characters; ask your identity provider for one with fewer claims',
  audience: 'the token is for another audience; request one for this service',
  expired: `the token has expired; ${NEW_TOKEN}`,
  not_yet: 'the token is not valid yet; try again when it is, or check the clock of your identity provider',
  tenant: 'the token names no tenant; ask the administrator of your identity provider for the tenant claim',
}

/** 401 with RFC 6750's code for a token that was sent and does not hold. */
export function refused(why: Refusal): AppError {
  const message = MESSAGES[why] ?? `the token could not be verified; ${NEW_TOKEN}`
  return new AppError('authentication', message, { code: 'invalid_token', cause: why })
}

/** 401 without a code, as RFC 6750 has it where no bearer token was sent at all. */
export const noToken = () => new AppError('authentication', 'send a token: Authorization: Bearer <ACCESS_TOKEN>')
