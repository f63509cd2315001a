import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { canRun, has } from '../../../api/caller.ts'
import { Icon } from '../../../parts/icon.tsx'
import type { DraftFiles } from '../model/draft-files.ts'

/** Whether the server keeps files, and this person may give it some. */
export const mayAttach = (): boolean => has('files') && canRun().value

/** Adds files to a message: picked files, and files that are dropped anywhere on the page. The browser would otherwise open the dropped files. */
export function AddFiles({ files }: { files: DraftFiles }) {
  const field = useRef<HTMLInputElement>(null)
  const isDropping = useSignal(false)
  useEffect(() => {
    const ended = new AbortController()
    const on = (name: 'dragover' | 'dragleave' | 'drop', take: (event: DragEvent) => void) =>
      addEventListener(name, (event) => event.dataTransfer?.types.includes('Files') && take(event), ended)
    on('dragover', (event) => {
      event.preventDefault()
      isDropping.value = true
    })
    on('dragleave', ({ relatedTarget }) => (isDropping.value = relatedTarget !== null))
    on('drop', (event) => {
      event.preventDefault()
      isDropping.value = false
      files.add([...(event.dataTransfer?.files ?? [])])
    })
    return () => ended.abort()
  }, [files])
  const onPick = ({ currentTarget }: { currentTarget: HTMLInputElement }) => {
    files.add([...(currentTarget.files ?? [])])
    currentTarget.value = '' // So that the same file can be picked again.
  }
  return (
    <>
      <button type="button" class="button plain" onClick={() => field.current?.click()}>
        <Icon name="plus" /> Attach
      </button>
      <input ref={field} type="file" multiple hidden aria-label="Files" onChange={onPick} />
      {isDropping.value && <div class="drop-here">Drop the files to attach them</div>}
    </>
  )
}

/** Adds pasted files, such as a screenshot. Copied table cells also contain a picture, but they are pasted as text. */
export function pastedFiles(event: ClipboardEvent, files: DraftFiles): void {
  const { files: pasted = [], types = [] } = event.clipboardData ?? {}
  const isText = types.includes('text/plain') && types.includes('text/html')
  if (pasted.length === 0 || isText || !mayAttach()) return
  event.preventDefault()
  files.add([...pasted])
}
