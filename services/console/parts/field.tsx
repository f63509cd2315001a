import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

type FieldProps = {
  label: string
  hint?: string | undefined
  problem?: string | undefined
  /** Renders the control with the id that the label names. */
  children: (id: string) => ComponentChildren
}

export function Field({ label, hint, problem, children }: FieldProps) {
  const id = useId()
  return (
    <div class="field">
      <label class="label" for={id}>
        {label}
      </label>
      {children(id)}
      {hint !== undefined && <span class="hint">{hint}</span>}
      {problem !== undefined && <span class="problem">{problem}</span>}
    </div>
  )
}
