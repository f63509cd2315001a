/** Why a run has failed, in plain words, and the page where the reader can fix it. */
export type Cause = {
  text: string
  /** Whether the same prompt may be answered the next time. */
  mayHelp: boolean
  /** The page of settings that can mend it. */
  settings?: string
}

const [PROVIDERS, LIMITS] = ['/settings', '/settings?tab=limits'] as const

const after = (text: string, settings?: string): Cause => ({ text, mayHelp: true, ...(settings && { settings }) })
const never = (text: string, settings?: string): Cause => ({ ...after(text, settings), mayHelp: false })

const CAUSES: Readonly<Record<string, Cause>> = {
  provider_auth: after('The provider refused the key', PROVIDERS),
  provider_rate_limited: after('The provider’s rate limit is reached', PROVIDERS),
  provider_unavailable: after('The provider does not answer', PROVIDERS),
  provider_rejected: after('The provider rejected the request', PROVIDERS),
  context_too_long: never('The conversation is too long for the model'),
  content_filtered: never('The provider’s filter stopped the answer'),
  unsupported_attachment: never('The model does not take the file'),
  max_turns_exceeded: after('The agent used up its turns'),
  invalid_output: after('The answer did not fit its schema'),
  no_room: after('No place became free in time', LIMITS),
  budget_exhausted: never('The budget is used up', LIMITS),
  cancelled: after('Stopped'),
  session_deleted: never('The conversation was deleted'),
  worker_lost: after('The process of the run died'),
  worker_draining: after('The process of the run was stopped'),
  slow_consumer: after('The connection to the run was lost'),
  stream_gap: after('The connection to the run was lost'),
  relay_unavailable: after('The connection to the run was lost'),
  storage_unavailable: after('The store did not answer'),
  timeout: after('The answer took too long'),
  internal: after('The server made a mistake'),
  plan_failed: after('A step of the plan failed'),
}

/** How a run may have ended. */
export const CODES: readonly string[] = ['ok', ...Object.keys(CAUSES)]

export const causeOf = (code: string | undefined): Cause => CAUSES[code ?? ''] ?? after(code ?? 'Failed')

/** Whether the provider of the model has caused the failure, so that other runs may fail too. */
export const isOfProvider = (code: string | undefined): boolean => code?.startsWith('provider_') ?? false
