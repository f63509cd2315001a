import type { PendingPermission, PermissionDecision } from './store.ts'

/** How long a request may be replied to. Each store measures it by a clock of its own, because the clock of the worker may differ. */
export const waitMsOf = ({ details }: Pick<PendingPermission, 'details'>): number =>
  Date.parse(details.expires_at) - Date.parse(details.created_at)

/** Whether a client made this decision: only such a decision has a deadline. */
export const isReply = (state: PermissionDecision['state'] | undefined): boolean =>
  state === 'allowed' || state === 'denied' || state === 'answered'
