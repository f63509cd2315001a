import type { ComponentChildren } from 'preact'

type FoldedFormProps = { name: string; summary: string; children: ComponentChildren }

/** A form below a list, which is opened by its heading or by the action of the empty list. */
export const FoldedForm = ({ name, summary, children }: FoldedFormProps) => (
  <details class="card" id={name}>
    <summary class="padded">{summary}</summary>
    {children}
  </details>
)

/** The action of an empty list: opens the form of that name, at its first field. */
export const OpenForm = ({ name, children }: { name: string; children: ComponentChildren }) => (
  <button type="button" class="button main" onClick={() => openForm(name)}>
    {children}
  </button>
)

function openForm(name: string): void {
  const form = document.getElementById(name)
  form?.setAttribute('open', '')
  form?.querySelector<HTMLElement>('input, select, textarea')?.focus()
}
