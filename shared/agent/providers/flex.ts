import type { ModelOptions } from '../../kernel/model-options.ts'
import type { CountedUsage, Failure, ModelRequest } from './port.ts'

/** The name of OpenAI's tier for calls that may take their time, for half the price (D54.9). */
export const FLEX = 'flex'

/** The price in the flex tier, as a part of the normal price. */
const PRICE_FACTOR = 0.5
/** The least time that a call must have for the flex tier: enough to wait there without success, and then to be answered in the normal tier. */
const LEAST_MS = 600_000

type Call = Pick<ModelRequest, 'caller' | 'isUrgent'>

/** Whether a call uses the flex tier: its instance allows that, and nobody waits for its answer. */
export function wantsFlex({ caller, isUrgent }: Call, { flex }: ModelOptions): boolean {
  const { priority, deadlineMs = Number.POSITIVE_INFINITY } = caller ?? {}
  return flex === true && priority === 'batch' && !isUrgent && deadlineMs - Date.now() >= LEAST_MS
}

/** Whether a call with this failure is repeated in the normal tier: the flex tier had no room for it, or did not answer in time. */
export const leavesFlex = ({ code, reason }: Failure): boolean => reason === NO_FLEX || code === 'timeout'

/** The reason of a failure: OpenAI had no room in the flex tier. */
export const NO_FLEX = 'resource_unavailable'

/** The counts of an answer, with the tier that the answer itself names. */
export const countedIn = (tier: unknown, usage: CountedUsage | undefined): CountedUsage | undefined =>
  usage && tier === FLEX ? { ...usage, priceFactor: PRICE_FACTOR } : usage
