import type { JSX } from 'preact'
import { useMemo } from 'preact/hooks'
import { memo } from '../memo.ts'
import { Blocks } from './blocks.tsx'
import { GrowingText } from './growing-text.ts'
import { readMarkdown, type Section as TextSection } from './read-markdown.ts'
import './markdown.css'

/**
 * Shows the text of a model. Its Markdown becomes nodes of the page, and never goes through HTML. While the text grows,
 * only its last block is parsed again.
 */
export function Markdown({ text, isOpen = false }: { text: string; isOpen?: boolean }): JSX.Element {
  const growing = useMemo(() => new GrowingText(), [])
  const sections = useMemo(() => (isOpen ? growing.sections(text) : readMarkdown(text)), [text, isOpen])
  return (
    <div class="markdown">
      {sections.map((section, i) => (
        <Section key={i} section={section} />
      ))}
    </div>
  )
}

const Section = memo(({ section: { nodes, raw } }: { section: TextSection }) =>
  nodes ? <Blocks nodes={nodes} /> : <p class="as-is">{raw}</p>,
)
