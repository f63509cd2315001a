import { conflict, notFound } from '../../errors.ts'
import type { PermissionKey, PermissionReply, PermissionStore } from '../port.ts'

/** A client's reply to a permission request; what the book says of it becomes 200, 404 or 409 (api.md "Permission request"). */
export async function reply(
  book: PermissionStore,
  request: PermissionKey,
  { allow, reason }: PermissionReply,
): Promise<void> {
  const decision = { state: allow ? 'allowed' : 'denied', ...(reason !== undefined && { reason }) } as const
  const { isWon, state } = await book.decide(request, decision)
  if (isWon) return
  if (state === 'allowed' || state === 'denied') {
    throw conflict(`permission request ${request.id} has been replied to already: it was ${state}`)
  }
  throw notFound(`no pending permission request ${request.id}: it timed out, its run ended, or it never was`)
}
