import type { Fence } from '../../shared/broker/port.ts'
import type { Metrics } from '../../shared/metrics.ts'

/** Waits while the process's lease is in doubt: then either the lease is renewed, or its runs are aborted. */
export function createCanAct(fence: Fence, metrics: Metrics): (signal: AbortSignal) => Promise<boolean> {
  return async (signal) => {
    while (!fence.isHeld() && !signal.aborted) {
      metrics.count('fence_refusals')
      await fence.whenHeld(signal)
    }
    return !signal.aborted
  }
}
