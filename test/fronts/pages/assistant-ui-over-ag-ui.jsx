import { HttpAgent } from '@ag-ui/client'
import {
  ActionBarPrimitive,
  AssistantRuntimeProvider,
  BranchPickerPrimitive,
  ComposerPrimitive,
  MessagePrimitive,
  ThreadPrimitive,
} from '@assistant-ui/react'
import {
  useAgUiInterrupts,
  useAgUiRuntime,
  useAgUiSteerAway,
  useAgUiSubmitInterruptResponses,
} from '@assistant-ui/react-ag-ui'
import { useState } from 'react'
import { createRoot } from 'react-dom/client'

const isOpenedAnew = location.hash !== ''
location.hash ||= crypto.randomUUID()
const agent = new HttpAgent({ url: `${API}/ag-ui`, threadId: location.hash.slice(1) })

/** A page that was opened anew runs the agent without messages, and gets those of the thread. */
const history = { load: async () => ({ messages: [], unstable_resume: isOpenedAnew }), append: async () => {} }

const Call = ({ toolName, argsText, result }) => (
  <section>
    <code>{`${toolName} ${argsText}`}</code>{' '}
    <output>{typeof result === 'string' ? result : JSON.stringify(result)}</output>
  </section>
)

const Message = () => (
  <MessagePrimitive.Root>
    <MessagePrimitive.Parts components={{ tools: { Fallback: Call } }} />
    <ActionBarPrimitive.Root hideWhenRunning>
      <MessagePrimitive.If user>
        <ActionBarPrimitive.Edit>Edit</ActionBarPrimitive.Edit>
      </MessagePrimitive.If>
      <MessagePrimitive.If assistant>
        <ActionBarPrimitive.Reload>Again</ActionBarPrimitive.Reload>
      </MessagePrimitive.If>
    </ActionBarPrimitive.Root>
    <BranchPickerPrimitive.Root hideWhenSingleBranch>
      <BranchPickerPrimitive.Previous>Back</BranchPickerPrimitive.Previous>{' '}
      <BranchPickerPrimitive.Next>On</BranchPickerPrimitive.Next>
    </BranchPickerPrimitive.Root>
  </MessagePrimitive.Root>
)

const EditComposer = () => (
  <ComposerPrimitive.Root>
    <ComposerPrimitive.Input name="edit" /> <ComposerPrimitive.Send>Save</ComposerPrimitive.Send>
  </ComposerPrimitive.Root>
)

/** The requests that wait, all of which are answered together. */
function Interrupts() {
  const interrupts = useAgUiInterrupts()
  const submit = useAgUiSubmitInterruptResponses()
  const answer = (approved) =>
    void submit(interrupts.map(({ id }) => ({ interruptId: id, status: 'resolved', payload: { approved } })))
  if (interrupts.length === 0) return null
  return (
    <section>
      {interrupts.map(({ id, message }) => (
        <em key={id}>{message}</em>
      ))}
      <button onClick={() => answer(true)}>Allow</button> <button onClick={() => answer(false)}>Deny</button>
    </section>
  )
}

/** Whoever writes instead of answering abandons the requests. */
function Composer({ begin }) {
  const steerAway = useAgUiSteerAway()
  const send = (data) => {
    begin()
    const text = { type: 'text', text: data.get('prompt') }
    const file = {
      type: 'file',
      data: 'data:application/zip;base64,UEsFBg==',
      mimeType: 'application/zip',
      filename: 'a.zip',
    }
    void steerAway({ content: data.get('attached') ? [text, file] : [text] }).catch(() => {})
  }
  return (
    <form action={send}>
      <textarea name="prompt" /> <input name="attached" type="checkbox" />{' '}
      <ThreadPrimitive.If running={false}>
        <button>Send</button>
      </ThreadPrimitive.If>
    </form>
  )
}

function Page() {
  const [error, setError] = useState()
  const runtime = useAgUiRuntime({ agent, adapters: { history }, onError: ({ message }) => setError(message) })
  return (
    <AssistantRuntimeProvider runtime={runtime}>
      <ThreadPrimitive.Messages components={{ Message, EditComposer }} />
      <Interrupts />
      {error && <p role="alert">{error}</p>}
      <Composer begin={() => setError(undefined)} />
      <ThreadPrimitive.If running>
        <ComposerPrimitive.Cancel>Stop</ComposerPrimitive.Cancel>
      </ThreadPrimitive.If>
    </AssistantRuntimeProvider>
  )
}

createRoot(document.body.appendChild(document.createElement('div'))).render(<Page />)
