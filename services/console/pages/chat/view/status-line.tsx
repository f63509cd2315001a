import type { ComponentChildren } from 'preact'
import { counted, duration, money, percent, short } from '../../../base/format.ts'
import type { Conversation } from '../model/conversation.ts'

/** The usage of the conversation so far, and separately the usage of its last run. */
export function StatusLine({ conversation }: { conversation: Conversation }) {
  const past = conversation.info.value
  const newest = conversation.exchanges.value.findLast(({ live }) => live)?.live
  const { usage, turn } = newest?.view.value ?? {}
  const isCounted = newest === undefined || newest.isOver
  const running = conversation.open.value.reduce((sum, { live }) => sum + (live?.view.value.usage.cost_usd ?? 0), 0)
  return (
    <dl class="status-line small soft number">
      <Group name="Conversation">
        {past && money(past.usage.cost_usd + (isCounted ? 0 : running))}
        {past && past.usage.turns > 0 && counted(past.usage.turns, 'turn')}
        {newest && newest.context.value > 0 && `${short(newest.context.value)} tokens of context`}
      </Group>
      <Group name={isCounted ? 'Last run' : 'This run'}>
        {turn?.model ?? past?.model}
        {usage && usage.turn_count > 0 && money(usage.cost_usd)}
        {usage && usage.turn_count > 0 && `${short(usage.input_tokens)} in, ${short(usage.output_tokens)} out`}
        {usage &&
          usage.cache_read_tokens > 0 &&
          `${percent(usage.cache_read_tokens / usage.input_tokens)} from the cache`}
        {newest?.firstTokenMs.value !== undefined && `first token ${duration(newest.firstTokenMs.value)}`}
      </Group>
    </dl>
  )
}

/** Leaves out the facts that are not known yet, and the whole group if none of them is. */
function Group({ name, children }: { name: string; children: ComponentChildren }) {
  const facts = [children].flat().filter((fact) => typeof fact === 'string')
  if (facts.length === 0) return null
  return (
    <div>
      <dt>{name}</dt>
      {facts.map((fact, i) => (
        <dd key={i}>{fact}</dd>
      ))}
    </div>
  )
}
