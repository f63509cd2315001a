import { memo } from '../../../parts/memo.ts'
import { BlockList } from '../../../parts/run/block-list.tsx'
import { LiveAnswer } from '../../../parts/run/live-answer.tsx'
import type { Exchange } from '../model/exchange.ts'

type ExchangeProps = { exchange: Exchange; sessionId: string }

/** A prompt and its answer. One that is over is never drawn again. */
export const ExchangeView = memo(({ exchange, sessionId }: ExchangeProps) => (
  <article class="exchange">
    {exchange.prompt !== undefined && <div class="prompt">{exchange.prompt}</div>}
    {exchange.live ? (
      <LiveAnswer live={exchange.live} sessionId={sessionId} />
    ) : (
      <BlockList blocks={exchange.blocks} permissions={[]} sessionId={sessionId} />
    )}
  </article>
))
