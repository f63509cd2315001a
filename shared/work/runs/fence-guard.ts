import type { Tools } from '../../agent/engine/resources.ts'
import type { Fence } from '../../cluster/members/fence.ts'
import type { Metrics } from '../../kernel/metrics.ts'

/** `canAct` waits while the process's lease is in doubt, until the lease is renewed or its runs are aborted. */
export function createFenceGuard(fence: Fence, metrics: Metrics): Pick<Tools, 'canAct' | 'mayAct'> {
  const mayAct = () => {
    const isHeld = fence.isHeld()
    if (!isHeld) metrics.count('fence_refusals')
    return isHeld
  }
  return {
    mayAct,
    async canAct(signal) {
      while (!signal.aborted && !mayAct()) await fence.whenHeld(signal)
      return !signal.aborted
    },
  }
}
