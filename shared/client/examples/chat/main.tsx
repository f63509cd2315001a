import { Chat, type UIMessage, useChat } from '@ai-sdk/react'
import {
  DefaultChatTransport,
  type DynamicToolUIPart,
  generateId,
  lastAssistantMessageIsCompleteWithApprovalResponses,
} from 'ai'
import { useEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'

/** The page's address contains the id, so that a reload shows the chat again. It is the id of a session. */
location.hash ||= generateId()
const id = location.hash.slice(1)

const kept = await fetch(`/engine/ui/chat/${id}`)

const conversation = new Chat<UIMessage>({
  id,
  messages: kept.ok ? ((await kept.json()) as UIMessage[]) : [],
  transport: new DefaultChatTransport({ api: '/engine/ui/chat' }),
  // The answer stops at an approval, and continues once the person has decided.
  sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
})

type Answer = (id: string, approved: boolean) => void

function Call({ call, answer }: { call: DynamicToolUIPart; answer: Answer }) {
  const { toolName, input, state, approval } = call
  const isAsked = state === 'approval-requested'
  return (
    <p>
      <code>{`${toolName} ${JSON.stringify(input)}`}</code> {!isAsked && state}
      {isAsked && <button onClick={() => answer(approval.id, true)}>Allow</button>}
      {isAsked && <button onClick={() => answer(approval?.id ?? '', false)}>Deny</button>}
    </p>
  )
}

function Message({ message: { role, parts }, answer }: { message: UIMessage; answer: Answer }) {
  return (
    <article className={role}>
      {parts.map((part, i) => {
        if (part.type === 'text') return <p key={i}>{part.text}</p>
        return part.type === 'dynamic-tool' && <Call key={part.toolCallId} call={part} answer={answer} />
      })}
    </article>
  )
}

function Page() {
  const { messages, status, error, sendMessage, addToolApprovalResponse, resumeStream } = useChat({
    chat: conversation,
  })
  const [isOpening, setOpening] = useState(true)
  // The newest answer may still be coming, or wait for an approval: the stream is read again from its beginning.
  useEffect(() => void resumeStream().finally(() => setOpening(false)), [])
  const answer: Answer = (asked, approved) => void addToolApprovalResponse({ id: asked, approved })
  return (
    <fieldset disabled={isOpening}>
      {messages.map((message) => (
        <Message key={message.id} message={message} answer={answer} />
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form action={(data) => void sendMessage({ text: data.get('prompt') as string })}>
        <textarea name="prompt" aria-label="Message" required />
        <button disabled={status === 'submitted' || status === 'streaming'}>Send</button>
      </form>
    </fieldset>
  )
}

createRoot(document.body.appendChild(document.createElement('main'))).render(<Page />)
