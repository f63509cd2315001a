import { type Signal, useSignal } from '@preact/signals'
import { canRun } from '../../../api/caller.ts'
import { tell, tellFailure } from '../../../base/announce.ts'
import { hrefOf, navigate } from '../../../base/router.ts'
import { Area } from '../../../parts/text-area.tsx'
import type { Conversation } from '../model/conversation.ts'
import type { Exchange } from '../model/exchange.ts'

type ToolsProps = { conversation: Conversation; exchange: Exchange }

/**
 * The buttons of a message: its other versions, a new version, and a separate conversation from here. While a run
 * continues, nothing new can be created.
 */
export function MessageTools({ conversation, exchange }: ToolsProps) {
  const isEditing = useSignal(false)
  const { prompt = '' } = exchange
  const runAgain = (text: string) => void conversation.sendInstead(exchange, text).catch(tellFailure)
  if (isEditing.value) return <Editor prompt={prompt} isEditing={isEditing} onRun={runAgain} />
  return (
    <div class="row tight small versions">
      <Switch conversation={conversation} exchange={exchange} />
      {canRun().value && conversation.open.value.length === 0 && (
        <>
          <button type="button" class="button plain" onClick={() => (isEditing.value = true)}>
            Edit and run again
          </button>
          <button type="button" class="button plain" onClick={() => runAgain(prompt)}>
            Regenerate
          </button>
          <button type="button" class="button plain" onClick={() => void fork(conversation, exchange)}>
            Fork
          </button>
        </>
      )}
    </div>
  )
}

/** Opens a separate conversation that continues from the end of this exchange. */
async function fork(conversation: Conversation, exchange: Exchange): Promise<void> {
  const id = await conversation.fork(exchange).catch(tellFailure)
  if (!id) return
  tell('A copy up to this answer: what you write here stays out of the first conversation')
  navigate(hrefOf(`/chat/${encodeURIComponent(id)}`))
}

function Switch({ conversation, exchange: { id } }: ToolsProps) {
  const versions = id === undefined ? undefined : conversation.versions.value.get(id)
  if (!versions) return null
  const { heads, at } = versions
  const to = (place: number, label: string, sign: string) => (
    <button
      type="button"
      class="button plain icon"
      aria-label={label}
      disabled={heads[place] === undefined}
      onClick={() => void conversation.show(heads[place] ?? '')}
    >
      {sign}
    </button>
  )
  return (
    <>
      {to(at - 1, 'Earlier version', '‹')}
      <span class="number">{`${at + 1}/${heads.length}`}</span>
      {to(at + 1, 'Later version', '›')}
    </>
  )
}

type EditorProps = { prompt: string; isEditing: Signal<boolean>; onRun(text: string): void }

function Editor({ prompt, isEditing, onRun }: EditorProps) {
  const text = useSignal(prompt)
  const run = (event: Event) => {
    event.preventDefault()
    isEditing.value = false
    onRun(text.value.trim())
  }
  return (
    <form class="stack editor" onSubmit={run}>
      <Area
        class="input"
        rows={3}
        aria-label="Edited message"
        value={text.value}
        onInput={({ currentTarget }) => (text.value = currentTarget.value)}
      />
      <div class="row">
        <button type="submit" class="button main" disabled={text.value.trim() === ''}>
          Run again
        </button>
        <button type="button" class="button plain" onClick={() => (isEditing.value = false)}>
          Cancel
        </button>
      </div>
    </form>
  )
}
