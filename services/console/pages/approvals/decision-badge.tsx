import type { Decided } from '../../parts/ask/reply.ts'
import { StateBadge } from '../../parts/state-badge.tsx'

export const DecisionBadge = ({ decided: { allow, how } }: { decided: Decided }) => (
  <StateBadge
    state={how === 'timeout' ? 'expired' : how === 'cancelled' ? 'withdrawn' : allow ? 'allowed' : 'denied'}
  />
)
