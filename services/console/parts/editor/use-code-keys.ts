import type { RefObject } from 'preact'
import { useMemo } from 'preact/hooks'
import { hasMoreLines } from '../../base/long-text.ts'
import { breakLine, closeBracket, type Edit, indent, outdent, type Selected } from './editing.ts'

type CodeKeys = { onKeyDown(event: KeyboardEvent): void; onPointerDown(): void; onFocus(): void }

const MODIFIERS: ReadonlySet<string> = new Set(['Shift', 'Control', 'Alt', 'Meta', 'CapsLock'])

/**
 * The keys of a text area that holds code. Tab indents once somebody has typed or clicked there. Before that, and after Escape, Tab leads to the next
 * field, so that people who use only the keyboard are not trapped in it.
 */
export const useCodeKeys = (field: RefObject<HTMLTextAreaElement | null>): CodeKeys =>
  useMemo(() => {
    let isWriting = false
    return {
      onFocus: () => (isWriting = false),
      onPointerDown: () => (isWriting = true),
      onKeyDown(event) {
        if (MODIFIERS.has(event.key)) return
        const wasWriting = isWriting
        isWriting = event.key !== 'Escape' && (event.key !== 'Tab' || wasWriting)
        const edit = field.current && (event.key !== 'Tab' || wasWriting) ? editOf(event, field.current) : undefined
        if (!field.current || !edit) return
        event.preventDefault()
        apply(field.current, edit)
      },
    }
  }, [field])

function editOf(
  { key, shiftKey, ctrlKey, altKey, metaKey, isComposing }: KeyboardEvent,
  { value, selectionStart, selectionEnd }: HTMLTextAreaElement,
): Edit | undefined {
  if (ctrlKey || altKey || metaKey || isComposing) return undefined
  const selected: Selected = [selectionStart, selectionEnd]
  if (key === 'Tab') return shiftKey ? outdent(value, selected) : indent(value, selected)
  if (key === 'Enter') return breakLine(value, selected)
  return key === '}' || key === ']' ? closeBracket(value, selected, key) : undefined
}

/** Chromium types lines one by one, and lays out the text for each. */
const MOST_TYPED_LINES = 100

/** As typed text, which the browser can undo; a browser that cannot do that, or not at once, gets the text alone. */
function apply(field: HTMLTextAreaElement, { from, to, insert, select }: Edit): void {
  field.setSelectionRange(from, to)
  const isTyped =
    !hasMoreLines(insert, MOST_TYPED_LINES) &&
    (insert === '' ? document.execCommand('delete') : document.execCommand('insertText', false, insert))
  if (!isTyped) {
    field.setRangeText(insert, from, to)
    field.dispatchEvent(new Event('input', { bubbles: true }))
  }
  field.setSelectionRange(...select)
}
