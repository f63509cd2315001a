import { AppError } from '../../kernel/errors.ts'

/** Why a token is refused. It is the `cause` of the error, for logs and tests; the caller gets the message of `MESSAGES`. */
export type RefusalReason =
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

/** Messages for holders of properly signed tokens. The other reasons share one message, because details would only help forgers. */
const MESSAGES: Partial<Record<RefusalReason, string>> = {
  too_long: 'the token is longer than 8192 characters; ask your identity provider for one with fewer claims',
  audience: 'the token is for another audience; request one for this service',
  expired: `the token has expired; ${NEW_TOKEN}`,
  not_yet: 'the token is not valid yet; try again when it is, or check the clock of your identity provider',
  tenant: 'the token names no tenant; ask the administrator of your identity provider for the tenant claim',
}

/** 401 for a token that was sent and is not valid, with the code of RFC 6750. */
export function refused(reason: RefusalReason): AppError {
  const message = MESSAGES[reason] ?? `the token could not be verified; ${NEW_TOKEN}`
  return new AppError('authentication', message, { code: 'invalid_token', cause: reason })
}

/** 401 for a request without a bearer token. RFC 6750 defines no code for it. */
export const noToken = () => new AppError('authentication', 'send a token: Authorization: Bearer <ACCESS_TOKEN>')
