import type { ComponentChildren } from 'preact'

type SectionProps = { title: string; aside?: ComponentChildren; children: ComponentChildren }

export const Section = ({ title, aside, children }: SectionProps) => (
  <section class="card" aria-label={title}>
    <header>
      <h2 class="grow">{title}</h2>
      {aside}
    </header>
    {children}
  </section>
)

/** Says why a part has nothing to show. */
export const Missing = ({ children }: { children: ComponentChildren }) => <p class="padded-in soft">{children}</p>

type BarProps = { used: number; of: number; text: string }

/** From this part on a bar warns. */
const HIGH = 0.85

/** A part of a whole, as a bar and as words. */
export const Bar = ({ used, of, text }: BarProps) => {
  const share = of > 0 ? Math.min(1, used / of) : 0
  return (
    <span class="load-bar">
      <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
        <rect class={share >= HIGH ? 'high' : ''} width={share * 100} height="6" />
      </svg>
      <span class="number">{text}</span>
    </span>
  )
}
