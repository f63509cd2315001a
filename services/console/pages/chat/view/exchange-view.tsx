import { tellFailure } from '../../../base/announce.ts'
import { lazy } from '../../../parts/lazy.tsx'
import { memo } from '../../../parts/memo.ts'
import { BlockList } from '../../../parts/run/block-list.tsx'
import { LiveAnswer } from '../../../parts/run/live-answer.tsx'
import { Prompt, PutInModel } from '../../../parts/run/prompt.tsx'
import type { Conversation } from '../model/conversation.ts'
import { type Exchange, startsSubagents } from '../model/exchange.ts'

type ExchangeProps = { exchange: Exchange; sessionId: string; onRetry(): void }

const Artifact = lazy(() => import('../../../parts/run/artifact.tsx').then((loaded) => loaded.Artifact))
const MessageTools = lazy(() => import('./message-tools.tsx').then((loaded) => loaded.MessageTools))

/** A prompt and its answer. It is not drawn again once its run has ended. */
export const ExchangeView = memo(({ exchange, conversation }: { exchange: Exchange; conversation: Conversation }) => (
  <article class="exchange">
    {exchange.prompt !== undefined && (
      <>
        {exchange.prompt !== '' && <Prompt text={exchange.prompt} />}
        {exchange.files && exchange.files.length > 0 && (
          <div class="sent-files" role="group" aria-label="Files of the prompt">
            {exchange.files.map((file) => (
              <Artifact key={file.file_id} file={file} />
            ))}
          </div>
        )}
        <MessageTools exchange={exchange} conversation={conversation} />
      </>
    )}
    <Answer
      exchange={exchange}
      sessionId={conversation.id}
      onRetry={() => void conversation.sendInstead(exchange, exchange.prompt ?? '').catch(tellFailure)}
    />
    <PutInModel prompt={exchange.prompt} />
  </article>
))

function Answer(props: ExchangeProps) {
  const { exchange } = props
  if (exchange.live) return <LiveAnswer {...props} live={exchange.live} />
  const View = exchange.code !== undefined || startsSubagents(exchange) ? PastAnswer : History
  return <View {...props} />
}

const History = ({ exchange: { blocks }, sessionId }: ExchangeProps) => (
  <BlockList blocks={blocks} permissions={[]} sessionId={sessionId} />
)

const PastAnswer = lazy(() => import('./past-answer.tsx').then((loaded) => loaded.PastAnswer), History)
