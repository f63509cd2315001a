import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { caller, canRun } from '../../../api/caller.ts'
import { tellFailure } from '../../../base/announce.ts'
import { Icon } from '../../../parts/icon.tsx'
import { lazy } from '../../../parts/lazy.tsx'
import { Notice } from '../../../parts/notice.tsx'
import { Area } from '../../../parts/text-area.tsx'
import { DraftFiles } from '../model/draft-files.ts'
import type { Message } from '../model/first-message.ts'
import { AddFiles, mayAttach, pastedFiles } from './add-files.tsx'

type ComposerProps = {
  draft: Signal<string>
  isBusy: boolean
  waiting?: number
  /** The message that the server has refused last: it is here again. */
  refused?: { message: Message; cause: Error } | undefined
  onSend(message: Message): void
  onSteer?(text: string): Promise<void>
  onStop?(): void
}

const DraftFileList = lazy(() => import('./draft-file-list.tsx').then((loaded) => loaded.DraftFileList))

/** The field in which a message is written. While a run continues, the next message waits for its end, or is sent to the run itself. */
export function Composer(props: ComposerProps) {
  const { draft, isBusy, refused, onSend, onSteer } = props
  const isPlanMode = useSignal(false)
  const model = useSignal('')
  const files = useDraftFiles(props)
  const isReady = draft.value.trim() !== '' && canRun().value && files.areReady.value
  const canSteer = isReady && isBusy && onSteer !== undefined && files.list.value.length === 0
  const submit = () => {
    if (!isReady) return
    const prompt = draft.value.trim()
    draft.value = ''
    const sent = files.take()
    const options = { ...(isPlanMode.value && { plan_mode: true }), ...(model.value !== '' && { model: model.value }) }
    onSend({ prompt, ...(sent.length > 0 && { files: sent }), ...options })
  }
  const steer = () => onSteer && tellRun(draft, onSteer)
  return (
    <form
      class="composer"
      onSubmit={(event) => (event.preventDefault(), submit())}
      onPaste={(event) => pastedFiles(event, files)}
    >
      {refused && <Refused cause={refused.cause} files={files} />}
      {files.list.value.length > 0 && <DraftFileList files={files} />}
      <PromptField draft={draft} isBusy={isBusy} onEnter={submit} onSteer={() => (canSteer ? steer() : submit())} />
      <div class="row">
        {mayAttach() && <AddFiles files={files} />}
        <Options isPlanMode={isPlanMode} model={model} />
        <span class="grow" />
        <Buttons {...props} isReady={isReady} onSteer={canSteer ? steer : undefined} />
      </div>
      {isBusy && <p class="small soft hint">{BUSY_HINT}</p>}
    </form>
  )
}

const BUSY_HINT = 'Enter queues the message behind this run. Ctrl and Enter tells the run now.'

/** The files of the message in this field. The files of a refused message are listed again. */
function useDraftFiles({ draft, refused }: ComposerProps): DraftFiles {
  const files = useMemo(() => new DraftFiles(), [])
  useEffect(() => () => files.drop(), [files])
  useEffect(() => {
    if (!refused) return
    if (draft.peek() === '') draft.value = refused.message.prompt
    files.putBack(refused.message.files ?? [], refused.cause)
  }, [refused])
  return files
}

/** A text that the run does not take any more is here again. */
function tellRun(draft: Signal<string>, onSteer: (text: string) => Promise<void>): void {
  const text = draft.value
  draft.value = ''
  onSteer(text.trim()).catch((cause: unknown) => {
    draft.value ||= text
    tellFailure(cause)
  })
}

/** Says why the message was not sent. A problem of a file is shown at the file. */
function Refused({ cause: { message }, files }: { cause: Error; files: DraftFiles }) {
  const isOfFile = files.list.value.some(({ problem }) => problem === message)
  return <Notice tone="bad">The message was not sent{isOfFile ? '.' : `: ${message}`}</Notice>
}

type ButtonsProps = Pick<ComposerProps, 'isBusy' | 'waiting' | 'onStop'> & {
  isReady: boolean
  onSteer: (() => void) | undefined
}

const Buttons = ({ isBusy, waiting = 0, isReady, onStop, onSteer }: ButtonsProps) => (
  <>
    {waiting > 0 && <span class="badge">{waiting} waiting</span>}
    {isBusy && (
      <>
        <button type="button" class="button stop" onClick={onStop}>
          <Icon name="stop" /> Stop
        </button>
        <button type="button" class="button" disabled={!onSteer} title="Its model reads it next" onClick={onSteer}>
          Steer now
        </button>
      </>
    )}
    <button type="submit" class="button main" disabled={!isReady}>
      <Icon name="send" /> {isBusy ? 'Queue' : 'Send'}
    </button>
  </>
)

const MOST_HEIGHT = 240

type PromptFieldProps = { draft: Signal<string>; isBusy: boolean; onEnter(): void; onSteer(): void }

function PromptField({ draft, isBusy, onEnter, onSteer }: PromptFieldProps) {
  const field = useRef<HTMLTextAreaElement>(null)
  useEffect(() => {
    const { current } = field
    if (!current) return
    current.style.height = 'auto'
    current.style.height = `${Math.min(MOST_HEIGHT, current.scrollHeight)}px`
  }, [draft.value])
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
    event.preventDefault()
    if (event.ctrlKey || event.metaKey) onSteer()
    else onEnter()
  }
  return (
    <Area
      field={field}
      rows={1}
      placeholder={
        isBusy ? 'Write the next message.' : 'Write a message. Enter sends it, Shift and Enter makes a new line.'
      }
      aria-label="Message"
      value={draft.value}
      onInput={({ currentTarget }) => (draft.value = currentTarget.value)}
      onKeyDown={onKeyDown}
    />
  )
}

function Options({ isPlanMode, model }: { isPlanMode: Signal<boolean>; model: Signal<string> }) {
  return (
    <>
      <label class="check small">
        <input
          type="checkbox"
          checked={isPlanMode.value}
          onChange={({ currentTarget }) => (isPlanMode.value = currentTarget.checked)}
        />
        Plan first
      </label>
      <input
        class="input model small"
        aria-label="Model"
        placeholder={caller().value?.model ?? 'model'}
        value={model.value}
        onInput={({ currentTarget }) => (model.value = currentTarget.value.trim())}
      />
    </>
  )
}
