import { counted, duration, money, short } from '../../../base/format.ts'
import type { Conversation } from '../model/conversation.ts'

/** Tokens and cost of the conversation so far, as it runs. */
export function StatusLine({ conversation }: { conversation: Conversation }) {
  const past = conversation.info.value
  const newest = conversation.exchanges.value.findLast(({ live }) => live)?.live
  const { usage } = newest?.view.value ?? {}
  const isCounted = newest === undefined || newest.isOver
  const running = conversation.open.value.reduce((sum, { live }) => sum + (live?.view.value.usage.cost_usd ?? 0), 0)
  const parts = [
    newest && newest.context.value > 0 && `context ${short(newest.context.value)}`,
    past && money(past.usage.cost_usd + (isCounted ? 0 : running)),
    usage && `↑${short(usage.input_tokens)} ↓${short(usage.output_tokens)}`,
    usage &&
      usage.cache_read_tokens > 0 &&
      `cache ${Math.round((usage.cache_read_tokens / usage.input_tokens) * 100)} %`,
    newest?.firstTokenMs.value !== undefined && `first token ${duration(newest.firstTokenMs.value)}`,
    past && past.usage.turns > 0 && counted(past.usage.turns, 'turn'),
    newest?.view.value.turn?.model ?? past?.model,
  ]
  return (
    <p class="status-line small soft number">
      {parts
        .filter((part) => typeof part === 'string')
        .map((part, i) => (
          <span key={i}>{part}</span>
        ))}
    </p>
  )
}
