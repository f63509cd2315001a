import { useSignal } from '@preact/signals'
import { createSessions } from '../../../../../shared/client/resources/sessions.ts'
import { caller, has } from '../../../api/caller.ts'
import { transport } from '../../../api/engine.ts'
import { hrefOf, navigate } from '../../../base/router.ts'
import { Icon } from '../../../parts/icon.tsx'
import { Empty } from '../../../parts/notice.tsx'
import { handOver, type Message } from '../model/first-message.ts'
import { Composer } from './composer.tsx'
import { type Starter, startersFor } from './starters.ts'

/** A chat before its first message. The session is created with it. */
export function NewChat({ suggestion }: { suggestion: string | null }) {
  const isDemo = caller().value?.model === 'demo'
  const starters = startersFor(isDemo)
  const draft = useSignal(starters.find(({ id }) => id === suggestion)?.prompt ?? '')
  const refused = useSignal<{ message: Message; cause: Error } | undefined>(undefined)
  const send = async (message: Message) => {
    refused.value = undefined
    try {
      const { id } = await createSessions(transport()).open()
      handOver(id, message)
      navigate(hrefOf(`/chat/${encodeURIComponent(id)}`))
    } catch (cause) {
      refused.value = { message, cause: cause instanceof Error ? cause : new Error(String(cause)) }
    }
  }
  return (
    <section class="conversation" aria-label="New chat">
      <header class="conversation-head only-phone">
        <a class="button plain icon" href={hrefOf('/chat')} aria-label="All conversations">
          <Icon name="back" />
        </a>
        <h2>New chat</h2>
      </header>
      <div class="scroll start">
        {caller().value?.model === null ? (
          <NoModel />
        ) : (
          <Welcome
            isDemo={isDemo}
            starters={starters}
            onPick={(prompt) => (isDemo ? void send({ prompt }) : (draft.value = prompt))}
          />
        )}
      </div>
      <Composer draft={draft} refused={refused.value} onSend={(message) => void send(message)} isBusy={false} />
    </section>
  )
}

type WelcomeProps = { isDemo: boolean; starters: readonly Starter[]; onPick(prompt: string): void }

const Welcome = ({ isDemo, starters, onPick }: WelcomeProps) => (
  <Empty
    title="What should the agent do?"
    action={
      <div class="starters">
        {starters.map(({ id, title, hint, prompt }) => (
          <button key={id} type="button" class="starter card" onClick={() => onPick(prompt)}>
            <strong>{title}</strong>
            <span class="soft small">{hint}</span>
          </button>
        ))}
      </div>
    }
  >
    {isDemo
      ? 'No model is configured, so the built-in demo answers: it plays one of these scenes.'
      : 'It works with the tools of this server, and asks before it changes something.'}
  </Empty>
)

const NoModel = () => (
  <Empty
    title="No model answers yet"
    action={
      has('config') && (
        <a class="button main" href={hrefOf('/settings')}>
          Configure a provider
        </a>
      )
    }
  >
    The server has no model of its own, and your tenant has no route to one.
  </Empty>
)
