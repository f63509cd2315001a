import type { ComponentChildren } from 'preact'
import '../style/pages.css'

type PageHeadProps = { title: string; purpose: string; children?: ComponentChildren }

/** The title of a page, one line that says what it is for, and its actions. */
export const PageHead = ({ title, purpose, children }: PageHeadProps) => (
  <header class="page-head">
    <div class="title">
      <h1>{title}</h1>
      <p class="soft">{purpose}</p>
    </div>
    {children}
  </header>
)
