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
