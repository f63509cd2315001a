import { CopilotKitProvider, useAgent, useCopilotKit, useFrontendTool, useInterrupt } from '@copilotkit/react-core/v2'
import { useEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { z } from 'zod'

location.hash ||= crypto.randomUUID()
const threadId = location.hash.slice(1)

const textOf = (content) =>
  typeof content === 'string' ? content : (content ?? []).map(({ text }) => text ?? '').join('')

function Call({ call, result }) {
  return (
    <section>
      <code>{`${call.function.name} ${call.function.arguments}`}</code>{' '}
      <output>{result && textOf(result.content)}</output>
    </section>
  )
}

function Message({ message, messages, isBusy, edit, again }) {
  const { role, content, toolCalls = [] } = message
  if (role !== 'user' && role !== 'assistant') return null
  return (
    <article>
      {textOf(content) !== '' && <p>{textOf(content)}</p>}
      {toolCalls.map((call) => (
        <Call key={call.id} call={call} result={messages.find(({ toolCallId }) => toolCallId === call.id)} />
      ))}
      {!isBusy && (role === 'user' ? <button onClick={edit}>Edit</button> : <button onClick={again}>Again</button>)}
    </article>
  )
}

function Chat() {
  const { agent, isReady } = useAgent({ agentId: 'default' })
  const { copilotkit } = useCopilotKit()
  const [isOpen, setOpen] = useState(false)
  const [edited, setEdited] = useState()
  const [error, setError] = useState()
  const [open, setPending] = useState([])
  useEffect(() => {
    if (!isReady) return
    const failed = (told) => setError(told.error?.message ?? told.event.message)
    const { unsubscribe } = agent.subscribe({ onRunErrorEvent: failed, onRunFailed: failed })
    agent.threadId = threadId
    copilotkit
      .connectAgent({ agent })
      .catch(() => {})
      .finally(() => setOpen(true))
    return unsubscribe
  }, [agent, isReady])
  useFrontendTool({
    name: 'page_address',
    description: 'The address of the page that the person sees.',
    parameters: z.object({}),
    handler: async () => location.href,
  })
  const interrupt = useInterrupt({
    agentId: 'default',
    renderInChat: false,
    render: ({ interrupts, resolve }) => <Interrupts interrupts={interrupts} resolve={resolve} learn={setPending} />,
  })
  const run = (messages) => {
    setError(undefined)
    agent.setMessages(messages)
    const resume = open.map(({ id }) => ({ interruptId: id, status: 'cancelled' }))
    setPending([])
    void copilotkit.runAgent({ agent, ...(resume.length > 0 && { resume }) }).catch(({ message }) => setError(message))
  }
  const { messages } = agent
  const send = (data) => {
    const text = data.get('prompt')
    const file = { type: 'document', source: { type: 'data', value: 'UEsFBg==', mimeType: 'application/zip' } }
    const content = data.get('attached') ? [{ type: 'text', text }, file] : text
    const before = edited
      ? messages.slice(
          0,
          messages.findIndex(({ id }) => id === edited.id),
        )
      : messages
    run([...before, { id: crypto.randomUUID(), role: 'user', content }])
    setEdited(undefined)
  }
  /** The messages up to the person's one that this one answers. */
  const again = (message) => {
    const at = messages.indexOf(message)
    run(messages.slice(0, messages.findLastIndex(({ role }, i) => role === 'user' && i < at) + 1))
  }
  const isBusy = agent.isRunning
  return (
    <main>
      {messages.map((message) => (
        <Message
          key={message.id}
          {...{ message, messages, isBusy }}
          edit={() => setEdited(message)}
          again={() => again(message)}
        />
      ))}
      {interrupt}
      {error && <p role="alert">{error}</p>}
      <form action={send} key={edited?.id}>
        <textarea name="prompt" defaultValue={edited && textOf(edited.content)} />{' '}
        <input name="attached" type="checkbox" />
        {isOpen && !isBusy && <button>Send</button>}
      </form>
      {isBusy && <button onClick={() => copilotkit.stopAgent({ agent })}>Stop</button>}
    </main>
  )
}

function Interrupts({ interrupts, resolve, learn }) {
  useEffect(() => learn(interrupts), [interrupts])
  const answer = (approved) => interrupts.forEach(({ id }) => void resolve({ approved }, id))
  return (
    <section>
      {interrupts.map(({ id, message }) => (
        <em key={id}>{message}</em>
      ))}
      <button onClick={() => answer(true)}>Allow</button> <button onClick={() => answer(false)}>Deny</button>
    </section>
  )
}

createRoot(document.body.appendChild(document.createElement('div'))).render(
  <CopilotKitProvider runtimeUrl="${RUNTIME}">
    <Chat />
  </CopilotKitProvider>,
)
