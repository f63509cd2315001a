import type { ComponentChildren } from 'preact'
import { Icon } from './icon.tsx'

type NoticeProps = { tone?: 'bad' | 'warn' | 'info'; children: ComponentChildren }

/** A message that stays where it is about something. */
export function Notice({ tone = 'info', children }: NoticeProps) {
  return (
    <div class={`notice ${tone}`} role={tone === 'bad' ? 'alert' : undefined}>
      <Icon name={tone === 'info' ? 'info' : 'warn'} />
      <div class="grow">{children}</div>
    </div>
  )
}

type EmptyProps = {
  title: string
  children?: ComponentChildren
  /** The steps that lead to it. */
  how?: readonly string[]
  action?: ComponentChildren
}

/** The text of an empty page: its purpose, and the next action. */
export function Empty({ title, children, how, action }: EmptyProps) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children && <p>{children}</p>}
      {how && (
        <ol class="steps">
          {how.map((step) => (
            <li key={step}>{step}</li>
          ))}
        </ol>
      )}
      {action}
    </div>
  )
}
