import { runIdOf } from '../../kernel/ids.ts'
import type { WebhookEventType } from '../tenant-config/config.ts'
import type { WebhookEvent } from './port.ts'

const PATHS: Record<WebhookEventType, (subject: string) => string> = {
  'run.ended': (runId) => `activity/${runId}`,
  'permission.requested': (requestId) => `approvals/${requestId}`,
  'tool_call.requested': () => 'approvals',
  'plan.ended': (planId) => `plans/${planId}`,
  'flow.ended': (traceId) => `activity/${runIdOf(traceId)}`,
}

/** The address of the page about what an event is about, in the console at this address. */
export const consolePage = (consoleUrl: string, { type, subject }: Pick<WebhookEvent, 'type' | 'subject'>): string =>
  `${consoleUrl}/${PATHS[type](encodeURIComponent(subject))}`
