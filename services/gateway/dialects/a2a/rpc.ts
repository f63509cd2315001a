import { AppError } from '../../../../shared/kernel/errors.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'

const CODES = {
  invalid_request: -32_600,
  method_not_found: -32_601,
  invalid_params: -32_602,
  internal: -32_603,
  task_not_found: -32_001,
  task_not_cancelable: -32_002,
  push_notification_not_supported: -32_003,
  unsupported_operation: -32_004,
  version_not_supported: -32_009,
} as const

type RpcErrorName = keyof typeof CODES

/** An error in the format of JSON-RPC, which is answered with status 200. */
export class RpcError extends Error {
  readonly code: number

  constructor(name: RpcErrorName, message: string) {
    super(message)
    this.code = CODES[name]
  }
}

/** The id of a request; null for one whose id is of another type. */
export type RpcId = string | number | null

export type RpcAnswer = { result: JsonObject } | { error: { code: number; message: string } }

export const rpcAnswer = (id: RpcId, answer: RpcAnswer): object => ({ jsonrpc: '2.0', id, ...answer })

export const rpcFailure = ({ code, message }: RpcError): RpcAnswer => ({ error: { code, message } })

/** Turns the error of an invalid message into a JSON-RPC error; other failures keep the status and format that they have on every path. */
export function asRpcError(cause: unknown): RpcError | undefined {
  if (cause instanceof RpcError) return cause
  if (!(cause instanceof AppError)) return undefined
  if (cause.kind === 'not_found') return new RpcError('task_not_found', cause.message)
  if (cause.kind !== 'invalid_request') return undefined
  const place = cause.param === undefined ? '' : ` (${cause.param})`
  return new RpcError('invalid_params', `${cause.message}${place}`)
}
