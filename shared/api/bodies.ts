import type { MessageRequest, PermissionReply, RunRequest } from '../broker/port.ts'
import { invalidRequest } from '../errors.ts'
import type { Decode, Decoded } from './decode.ts'
import { DecodeThread, type DecodeThreadLimits } from './decode-thread.ts'
import { readSchemas, type Schemas } from './document.ts'

/** The request bodies by the names of their schemas in `openapi.yaml`. */
export type BodyTypes = {
  RunRequest: RunRequest
  SendMessageRequest: MessageRequest
  CreateSessionRequest: { session_id?: string }
  PermissionReplyRequest: PermissionReply
}

export type BodyName = keyof BodyTypes

export interface Bodies {
  /** The checked body behind `bytes`, which are the callee's from now on. Throws `invalid_request` that names the field at fault. */
  decode<N extends BodyName>(name: N, bytes: Uint8Array<ArrayBuffer>): Promise<BodyTypes[N]>
}

export const BODY_NAMES: readonly BodyName[] = [
  'RunRequest',
  'SendMessageRequest',
  'CreateSessionRequest',
  'PermissionReplyRequest',
]

/** Up to here decoding takes a few milliseconds at worst; anything larger goes to the thread. */
const INLINE_MAX_BYTES = 128 * 1024

const THREAD_LIMITS: DecodeThreadLimits = { deadlineMs: 10_000, maxWaiting: 32, idleMs: 5_000 }

/** Reads the schemas and compiles the checks on first use, once. */
export function createBodies(threadLimits = THREAD_LIMITS): Bodies {
  const schemas = once(() => readSchemas(BODY_NAMES))
  const decode = once(async () => loadDecode(await schemas()))
  const thread = once(async () => new DecodeThread(await schemas(), threadLimits))
  return {
    async decode<N extends BodyName>(name: N, bytes: Uint8Array<ArrayBuffer>) {
      const isSmall = bytes.length <= INLINE_MAX_BYTES
      const decoded = isSmall ? (await decode())(name, bytes) : await (await thread()).decode({ name, bytes })
      return accept(decoded) as BodyTypes[N] // The schema of that name has vouched for it.
    },
  }
}

function accept(decoded: Decoded): unknown {
  if ('value' in decoded) return decoded.value
  const { message, param } = decoded.refusal
  throw invalidRequest(message, param === undefined ? {} : { param })
}

async function loadDecode(schemas: Schemas): Promise<Decode> {
  const { createDecode } = await import('./decode.ts') // On first use: ajv behind it is 14 MB that an idle process does without.
  return createDecode(schemas)
}

/** Makes the value when it is first asked for; a failure is not kept. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined
  const makeAnew = () =>
    make().catch((cause: unknown) => {
      made = undefined
      throw cause
    })
  return () => (made ??= makeAnew())
}
