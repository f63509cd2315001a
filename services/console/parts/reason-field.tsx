import type { Signal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { Field } from './field.tsx'

/** Asks why, and takes the focus. */
export function ReasonField({ reason, hint }: { reason: Signal<string>; hint?: string }) {
  const field = useRef<HTMLInputElement>(null)
  useLayoutEffect(() => field.current?.focus(), [])
  return (
    <Field label="Reason" hint={hint}>
      {(id) => (
        <input
          id={id}
          ref={field}
          class="input"
          maxLength={1000}
          value={reason.value}
          onInput={({ currentTarget }) => (reason.value = currentTarget.value)}
        />
      )}
    </Field>
  )
}
