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
  /** How one gets there, step by step. */
  how?: readonly string[]
  action?: ComponentChildren
}

/** The text of a page that has nothing to show: its purpose, and the one next action. */
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
